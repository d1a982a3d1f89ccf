"""The sessions of clients of the older protocol at one agent's endpoint, by the token that opened them."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgrove.web.identity import Principal

MOST = 10_000
"""Per token, as many as can be open at once, so that only sessions that have ended are forgotten."""
_HEADER = b"mcp-session-id"


class Sessions:
    """Looks at the ids that the endpoint hands out; a session that must end is ended as its client would."""

    def __init__(self, mcp: ASGIApp) -> None:
        self._mcp = mcp
        self._opened: dict[Principal, dict[bytes, None]] = {}

    @property
    def users(self) -> set[Principal]:
        """The holders of the tokens with which sessions were opened."""
        return set(self._opened)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._notice(scope, message)
            await send(message)

        await self._mcp(scope, receive, watched)

    async def end(self, user: Principal) -> int:
        """End all sessions of one token; how many there were."""
        opened = self._opened.pop(user, {})
        ended = 0
        for session in opened:
            ended += await self._end(session, user)
        return ended

    def _notice(self, scope: Scope, start: Message) -> None:
        session = next((value for name, value in start["headers"] if name.lower() == _HEADER), None)
        if session is None:
            return
        opened = self._opened.setdefault(scope["user"], {})
        if scope["method"] == "DELETE":
            opened.pop(session, None)
        else:
            opened[session] = None
        if len(opened) > MOST:
            del opened[next(iter(opened))]
        if not opened:
            del self._opened[scope["user"]]

    async def _end(self, session: bytes, user: Principal) -> bool:
        statuses: list[int] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {"type": "http", "method": "DELETE", "path": "/mcp", "headers": [(_HEADER, session)], "user": user}
        await self._mcp(scope, receive, send)
        return statuses == [200]
