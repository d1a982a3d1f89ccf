"""What a gateway remembers of the sessions of older clients."""

from __future__ import annotations

from itertools import count

import pytest
from starlette.types import Message, Receive, Scope, Send

from toolgrove.web.identity import Principal
from toolgrove.web.sessions import MOST, Sessions

pytestmark = pytest.mark.anyio
EDITOR, READER = Principal("editor", token="a"), Principal("reader", token="b")


class Endpoint:
    """An MCP endpoint that hands out a new session to every POST and ends the one that a DELETE names."""

    def __init__(self) -> None:
        self.ended: list[bytes] = []
        self._ids = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            session = dict(scope["headers"])[b"mcp-session-id"]
            self.ended.append(session)
        else:
            session = b"%d" % next(self._ids)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", session)]})
        await send({"type": "http.response.body", "body": b""})


async def opened(sessions: Sessions, user: Principal, number: int) -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        pass

    for _ in range(number):
        await sessions({"type": "http", "method": "POST", "headers": [], "user": user}, receive, send)


async def test_of_one_token_only_the_latest_sessions_are_remembered() -> None:
    endpoint = Endpoint()
    sessions = Sessions(endpoint)
    await opened(sessions, READER, 1)
    await opened(sessions, EDITOR, MOST + 2)
    assert await sessions.end(EDITOR) == MOST
    assert endpoint.ended == [b"%d" % number for number in range(4, MOST + 4)]
    assert sessions.users == {READER}
