"""What an endpoint can be asked to read: the documentation of its tools, or whatever else somebody hands in."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mcp_serve.calls import User
from mcp_serve.table import Json, ToolTable

DOCS = "docs://"


class NotRead(Exception):
    """A resource was not read, and why; without a `reason` there is no such resource."""

    def __init__(self, reason: str | None = None, data: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Resources(Protocol):
    """The resources to serve, in the form of the wire; may change at any time."""

    @property
    def offered(self) -> bool:
        """Whether there are any, so that clients are told to ask for them."""
        ...

    async def listed(self) -> list[Json]:
        """All that have an address of their own."""
        ...

    async def templates(self) -> list[Json]:
        """Those whose address has parts to fill in."""
        ...

    async def read(self, uri: str, user: User | None, meta: Mapping[str, Any]) -> Json:
        """The result of `resources/read`; raises NotRead."""
        ...

    @property
    def watchable(self) -> bool:
        """Whether clients are told that they can hear of changes of single resources."""
        ...

    async def watch(
        self, uri: str, tell: Callable[[], None], user: User | None, meta: Mapping[str, Any]
    ) -> Callable[[], None]:
        """Call `tell` on this loop whenever the resource changed, until the answer is called; raises NotRead."""
        ...


class Documentation:
    """The texts that the tools of a table have about themselves."""

    offered = True
    watchable = False

    def __init__(self, tools: ToolTable) -> None:
        self._tools = tools

    async def listed(self) -> list[Json]:
        """One for every tool that has such a text."""
        documented = [name for name, entry in self._tools.entries().items() if entry.documentation]
        return [{"uri": DOCS + name, "name": name, "mimeType": "text/plain"} for name in documented]

    async def templates(self) -> list[Json]:
        """None: every text is listed."""
        return []

    async def read(self, uri: str, user: User | None, meta: Mapping[str, Any]) -> Json:
        """One of the texts."""
        entry = self._tools.entry(uri.removeprefix(DOCS)) if uri.startswith(DOCS) else None
        if entry is None or not entry.documentation:
            raise NotRead
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": entry.documentation}]}

    async def watch(
        self, uri: str, tell: Callable[[], None], user: User | None, meta: Mapping[str, Any]
    ) -> Callable[[], None]:
        """None of them: a text changes with the list of tools, which is told."""
        raise NotRead
