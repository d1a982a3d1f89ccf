"""One MCP server over a tool table: what every transport serves, in both protocol eras.

Plain requests are answered by its line. For all others there is the SDK's server, made when it is first asked for.
"""

import logging
from collections.abc import Callable
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from mcp_serve import sdk
from mcp_serve.answer import Answer, failure
from mcp_serve.calls import Calls, Elsewhere, RunTool
from mcp_serve.discovery import announced, discovered
from mcp_serve.line import Line
from mcp_serve.listing import Listing
from mcp_serve.parts import Parts
from mcp_serve.prompts import Prompts
from mcp_serve.resources import Documentation, Resources
from mcp_serve.table import Json, ToolTable
from mcp_serve.tracing import is_collected
from mcp_serve.wire import Writer

if TYPE_CHECKING:
    from mcp.server import Server

    from mcp_serve.sdk_server import Changing, SdkServer


class Endpoint:
    """Lists, calls, documents and announces the tools of one table; `refuse` words what it refuses by itself.

    `resources` are what clients can read here; without any, the documentation of the tools. `prompts` are what they can
    get beside that. With `page`, `tools/list` gives so many tools at a time. `logs` says whether tools may log to their
    clients; without it none does. `state_key` seals what clients bring back with an answer: replicas share it, and
    pass on what comes to the wrong one of them by `elsewhere`.
    """

    def __init__(
        self,
        name: str,
        version: str,
        tools: ToolTable,
        run: RunTool,
        *,
        in_place: bool = False,
        refuse: Callable[[str], Answer] = failure,
        resources: Resources | None = None,
        prompts: Prompts | None = None,
        page: int | None = None,
        logs: Callable[[], bool] | None = None,
        logger: logging.Logger | None = None,
        state_key: bytes | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        logger = logger or logging.getLogger(__name__)
        self.calls = Calls(run, in_place=in_place, logger=logger, elsewhere=elsewhere)
        writer = Writer({"name": name, "version": version})
        self._listing = Listing(tools, writer, page)
        self._line = Line(tools, self.calls, self._listing, writer, refuse, self._discovered, logs)
        self._parts = Parts(
            name=name,
            version=version,
            tools=tools,
            calls=self.calls,
            listing=self._listing,
            refuse=refuse,
            resources=resources or Documentation(tools),
            watches=resources is not None,
            prompts=prompts,
            logs=logs,
            logger=logger,
            state_key=state_key or token_bytes(32),
        )
        self.sessions, self.under_way = self._parts.sessions, self._parts.under_way
        self._instructions: str | None = None
        self._is_traced = is_collected()
        self._sdk: SdkServer | None = None

    @property
    def server(self) -> "Server[Any]":
        """The SDK's server, made when it is first asked for."""
        if self._sdk is None:
            self._sdk = sdk.server().SdkServer(self._parts)
            self._sdk.server.instructions = self._instructions
        return self._sdk.server

    @property
    def line(self) -> Line | None:
        """Answers plain requests; None where they must pass through the SDK: somebody added to it, or traces it."""
        is_bare = not self._is_traced if self._sdk is None else self._sdk.is_as_made
        return self._line if is_bare else None

    def _discovered(self) -> Json:
        """What a client of the newer era is told; who added a capability to the SDK's server announces that too."""
        if self._sdk is None:
            return discovered(announced(self._parts), self._instructions)
        return discovered(self._sdk.announced(), self._sdk.server.instructions)

    def instruct(self, instructions: str | None) -> None:
        """Tell clients from now on how the tools are meant to be used."""
        self._instructions = instructions
        if self._sdk is not None:
            self._sdk.server.instructions = instructions

    async def drain(self, seconds: float) -> None:
        """Stop telling of changes, and let the running calls end."""
        if self._sdk is not None:
            self._sdk.close()
        await self.calls.drain(seconds)

    def list_in_pages(self, size: int | None) -> None:
        """Let `tools/list` give so many tools at a time from now on; None for all of them at once."""
        self._listing.size = size

    def tools_changed(self) -> None:
        """Tell every client that there are other tools, and so other texts about them; callable from any thread."""
        self.changed("tools", "resources")

    def changed(self, *lists: "Changing") -> None:
        """Tell every client, once per burst, on the loop that serves them; callable from any thread."""
        if self._sdk is not None:  # without it nobody listens yet
            self._sdk.changed(*lists)
