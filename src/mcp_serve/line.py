"""Answers the plain requests of one endpoint, past the SDK and as the SDK would."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from mcp_serve.answer import Answer, Refusal
from mcp_serve.calls import Calls, Channel, Question, User
from mcp_serve.eager import Work
from mcp_serve.listing import Listing
from mcp_serve.plain import Plain
from mcp_serve.table import Json, ToolTable
from mcp_serve.wire import Writer, failed

log = logging.getLogger(__name__)


class Line:
    """Takes a request that is plain at this endpoint too; `refuse` words what the endpoint refuses by itself.

    `discovered` gives the result of `server/discover`. `logs` says whether tools log to clients of the older era, who
    hear of it unasked: on the lane where they can.
    """

    def __init__(
        self,
        tools: ToolTable,
        calls: Calls,
        listing: Listing,
        writer: Writer,
        refuse: Callable[[str], Answer],
        discovered: Callable[[], Json],
        logs: Callable[[], bool] | None = None,
    ) -> None:
        self._tools = tools
        self._calls = calls
        self._listing = listing
        self._writer = writer
        self._refuse = refuse
        self._discovered = discovered
        self._logs = logs

    def answer(self, request: Plain, user: User | None) -> Work[bytes] | None:
        """What makes the answer; None where the request must go to the SDK."""
        if request.method == "tools/call":
            return partial(self._called, request, user) if self._is_plain(request) else None
        if request.method == "tools/list":
            writing = self._listing.result(request.params.get("cursor"), modern=request.modern)
            return None if writing is None else partial(self._listed, request, writing)
        return partial(self._pong if request.method == "ping" else self._introduced, request)

    def _is_plain(self, request: Plain) -> bool:
        """Whether the tool says nothing but its answer, at least not to this client, and reads no header."""
        entry = self._tools.entry(request.params["name"])
        is_told = not request.modern and request.hearing is None and self._logs is not None and self._logs()
        hears = request.can_answer or is_told
        if entry is None:
            return not hears
        return entry.header_schema is None and not (hears and entry.may_speak)

    async def _called(self, request: Plain, user: User | None) -> bytes:
        params = request.params
        channel = Channel(meta=request.meta, modern=request.modern)
        if request.hearing is not None:
            channel = channel._replace(log_level=request.hearing.level, send_log=request.hearing.log)
        try:
            outcome = await self._calls.begin(params["name"], params.get("arguments"), channel, user)
            if isinstance(outcome, Question):
                raise RuntimeError("a call without anybody to ask asked a question")
            given = self._refuse(outcome.text) if isinstance(outcome, Refusal) else outcome
            return self._writer.called(request, given)
        except Exception:
            log.exception("A call on the lane failed")
            return failed(request)

    async def _listed(self, request: Plain, writing: Awaitable[bytes]) -> bytes:
        return self._writer.framed(request, await asyncio.shield(writing))  # others may wait for it too

    async def _introduced(self, request: Plain) -> bytes:
        return self._writer.given(request, self._discovered())

    async def _pong(self, request: Plain) -> bytes:
        return self._writer.framed(request, b"{}")
