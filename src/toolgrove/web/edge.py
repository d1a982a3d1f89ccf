"""The bridge's guard, as the gateway has it: whom it refuses is on record."""

from __future__ import annotations

from collections.abc import Collection

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from apcore_mcp.server.http import Guard
from toolgrove.web.refusals import Refusals


class Edge(Guard):
    """Refuses what the guard refuses, and tells of foreign hosts and origins first; who is welcome costs nothing."""

    def __init__(self, app: ASGIApp, bound: str, allowed: Collection[str], refusals: Refusals) -> None:
        super().__init__(app, bound, list(allowed))
        self._refusals = refusals

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> Response | None:
        refusal = super()._refusal(headers)
        return None if refusal is None else _Told(refusal, self._refusals)


class _Told(Response):
    """A refusal that is told of before it is sent."""

    def __init__(self, refusal: Response, refusals: Refusals) -> None:
        super().__init__(status_code=refusal.status_code)
        self._refusal, self._refusals = refusal, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._refusals.tell("origin" if self.status_code == 403 else "host", scope)
        await self._refusal(scope, receive, send)
