"""How many sessions of older clients a gateway keeps, and what it remembers of them."""

from __future__ import annotations

from itertools import count

import anyio
import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from e2e.wire import Handshake
from toolgrove import Config, Grove
from toolgrove.web import session_room
from toolgrove.web.identity import Principal
from toolgrove.web.session_room import SessionRoom
from toolgrove.web.sessions import Sessions
from waiting import DEADLINE
from web.gateway import Agent
from web.test_web_refusals import served

pytestmark = pytest.mark.anyio
EDITOR, READER = Principal("editor", token="a"), Principal("reader", token="b")


class Endpoint:
    """An MCP endpoint that hands out a new session to every POST and ends the one that a DELETE names."""

    def __init__(self, first: int = 1) -> None:
        self.ended: list[bytes] = []
        self._ids = count(first)

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


async def test_one_session_too_many_ends_the_longest_idle_one_of_the_same_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_room, "OF_ONE", 5)
    endpoint = Endpoint()
    sessions = Sessions(endpoint, SessionRoom())
    await opened(sessions, READER, 1)
    await opened(sessions, EDITOR, 7)
    assert endpoint.ended == [b"2", b"3"]
    assert await sessions.end(EDITOR) == 5
    assert sessions.users == {READER}


async def test_all_agents_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_room, "MOST", 3)
    room, one, other = SessionRoom(), Endpoint(), Endpoint(first=100)
    first, second = Sessions(one, room), Sessions(other, room)
    await opened(first, READER, 2)
    await opened(second, EDITOR, 3)
    assert (one.ended, other.ended) == ([b"1", b"2"], [])
    assert first.users == set()
    assert second.users == {EDITOR}


async def test_abandoned_sessions_make_room_and_those_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """With real clients of the older era; one that is told that its session is over opens a new one, as MCP has it."""
    monkeypatch.setattr(session_room, "OF_ONE", 2)
    config = Config.model_validate({"agents": {"editor": {"role": "editor"}}})
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config) as grove, served(grove) as address:
            headers = {"Authorization": f"Bearer {grove.tokens.issue('editor', by='the test')}"}
            async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE, verify=False) as http:
                agent = Agent(port=address.port, agent="editor")
                listening, abandoned, late = (Handshake(http, agent) for _ in range(3))
                await listening.__aenter__()
                async with http.stream("GET", agent.mcp, headers=listening.headers) as stream:
                    assert stream.status_code == 200
                    await abandoned.__aenter__()
                    await late.__aenter__()
                    statuses = [(await one.request("tools/list")).status_code for one in (listening, abandoned, late)]
                    assert statuses == [200, 404, 200]
                    async with http.stream("GET", agent.mcp, headers=late.headers) as other:
                        assert other.status_code == 200
                        with pytest.raises(KeyError, match="mcp-session-id"):
                            await abandoned.__aenter__()  # all that there is room for are in use
