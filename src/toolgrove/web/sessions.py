"""The sessions of clients of the older protocol at one agent's endpoint, by the token that opened them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_serve.calls import User
from mcp_serve.eager import Work
from mcp_serve.lane import Line
from mcp_serve.plain import Plain
from mcp_serve.protocol import STATELESS
from toolgrove.web.http_json import problem
from toolgrove.web.identity import Principal
from toolgrove.web.session_room import SessionRoom

_HEADER = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_STATELESS = frozenset(version.encode() for version in STATELESS)


class Sessions:
    """Looks at the ids that the endpoint hands out; a session that must end is ended as its client would."""

    def __init__(self, mcp: ASGIApp, room: SessionRoom, line: Line | None = None) -> None:
        self._mcp = mcp
        self._room = room
        self._line = line
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

        user, session = scope["user"], _session(scope["headers"])
        if _opens(scope) and self._room.is_full(user):
            refusal = problem(503, "internal", "Too many sessions are open and in use. End one, then try again.")
            await refusal(scope, receive, send)
            return
        self._room.begin(session)
        try:
            await self._mcp(scope, receive, watched)
        finally:
            self._room.finish(session)
        await self._room.make_room(user)

    def answer(self, request: Plain, user: User | None) -> Work[bytes] | None:
        """What makes the answer to a plain request; None where it must come by the other way."""
        answer = None if self._line is None else self._line.answer(request, user)
        if answer is None or request.session is None:
            return answer
        return partial(self._in_session, request.session.encode(), answer)

    async def _in_session(self, session: bytes, answer: Work[bytes]) -> bytes:
        self._room.begin(session)
        try:
            return await answer()
        finally:
            self._room.finish(session)

    async def end(self, user: Principal) -> int:
        """End all sessions of one token; how many there were."""
        opened = self._opened.pop(user, {})
        ended = 0
        for session in opened:
            self._room.leave(session)
            ended += await self._end(session, user)
        return ended

    def _notice(self, scope: Scope, start: Message) -> None:
        session, user = _session(start["headers"]), scope["user"]
        if session is None:
            return
        if scope["method"] == "DELETE":
            self._room.leave(session)
            self._forget(session, user)
        else:
            self._opened.setdefault(user, {})[session] = None
            self._room.take(session, user, partial(self._end, session, user))

    def _forget(self, session: bytes, user: Principal) -> None:
        opened = self._opened.get(user, {})
        opened.pop(session, None)
        if not opened:
            self._opened.pop(user, None)

    async def _end(self, session: bytes, user: Principal) -> bool:
        self._forget(session, user)
        statuses: list[int] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {"type": "http", "method": "DELETE", "path": "/mcp", "headers": [(_HEADER, session)], "user": user}
        await self._mcp(scope, receive, send)
        return statuses == [200]


def _opens(scope: Scope) -> bool:
    """Whether a request may open a session: one of the older eras, outside of any."""
    names = {name.lower(): value for name, value in scope["headers"]}
    return scope["method"] == "POST" and _HEADER not in names and names.get(_VERSION) not in _STATELESS


def _session(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for name, value in headers if name.lower() == _HEADER), None)
