"""Sessions of the older era on the lane: cancelled, ended, asked, kept awake; and who they belong to."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.types import Receive, Scope, Send

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from lane.twins import LEGACY, SESSION, Answer, Asked, Twin, head_of, request, with_length
from mcp_serve import late
from mcp_serve.http import StreamableHTTP
from modules import Sample, registry_of
from waiting import DEADLINE

pytestmark = pytest.mark.anyio


class Held:
    """A module that waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = anyio.Event(), anyio.Event()
        self.ended = "not yet"
        self.module = Sample(self._execute)

    async def _execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.begun.set()
        while not self.go.is_set():
            if context.cancel_token.is_cancelled:
                self.ended = "cancelled"
            await anyio.sleep(0.001)
        if self.ended == "not yet":
            self.ended = "done"
        return {"done": True}


@asynccontextmanager
async def served(held: Held, capabilities: dict[str, Any] | None = None) -> AsyncIterator[tuple[Starlette, Twin]]:
    bridge = Bridge(registry_of({"held": held.module}), Options(transport="streamable-http"))
    app = bridge.app()
    async with app.router.lifespan_context(app):
        client = Twin(app, "")
        await client.greet("/mcp", capabilities)
        yield app, client
        held.go.set()


def message(method: str, params: dict[str, Any], number: Any = 1) -> Asked:
    body = json.dumps(request(LEGACY, method, params, number)).encode()
    return Asked(with_length(head_of(LEGACY), body), body)


def notice(method: str, params: dict[str, Any]) -> Asked:
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
    return Asked(with_length(head_of(LEGACY), body), body)


CALL = message("tools/call", {"name": "held", "arguments": {}})


async def under_way(client: Twin, held: Held) -> "asyncio.Task[Answer]":
    asking = asyncio.create_task(client.ask(CALL))
    with anyio.fail_after(DEADLINE):
        await held.begun.wait()
    return asking


async def test_a_call_in_a_session_is_answered_as_plain_json() -> None:
    held = Held()
    held.go.set()
    async with served(held) as (_, client):
        answer = await client.ask(CALL)
        assert answer.headers[b"content-type"] == b"application/json"
        assert SESSION in answer.headers
        assert answer.body["result"]["content"][0]["text"] == '{"done": true}'


async def test_a_client_can_cancel_a_call_in_its_session() -> None:
    held = Held()
    async with served(held) as (_, client):
        asking = await under_way(client, held)
        accepted = await client.ask(notice("notifications/cancelled", {"requestId": 1}))
        answer = await asking
        assert accepted.status == 202
        assert (answer.status, answer.body["error"]["code"]) == (200, -32800)
        with anyio.fail_after(DEADLINE):
            while held.ended != "cancelled":
                await anyio.sleep(0.001)


async def test_the_end_of_a_session_ends_its_calls() -> None:
    held = Held()
    async with served(held) as (_, client):
        asking = await under_way(client, held)
        ended = await client.ask(Asked(head_of(LEGACY), b"", "DELETE"))
        answer = await asking
        assert ended.status == 200
        assert (answer.status, answer.body["error"]["code"]) == (500, -32603)
        assert (await client.ask(CALL)).status == 404


async def test_an_answer_that_takes_long_becomes_a_stream_that_stays_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "STREAM_AFTER", 0.0)
    monkeypatch.setattr(late, "PING_EVERY", 0.001)
    held = Held()
    async with served(held) as (_, client):
        asking = await under_way(client, held)
        with anyio.fail_after(DEADLINE):
            while client.pings < 2:
                await anyio.sleep(0.001)
        held.go.set()
        answer = await asking
        assert answer.headers[b"content-type"] == b"text/event-stream"
        assert SESSION in answer.headers
        assert answer.body["result"]["content"][0]["text"] == '{"done": true}'


async def test_an_id_that_is_under_way_does_not_mix_two_answers_up() -> None:
    held = Held()
    async with served(held) as (_, client):
        asking = await under_way(client, held)
        other = await client.ask(message("tools/call", {"name": "nothing", "arguments": {}}))
        held.go.set()
        assert "held" not in json.dumps(other.body)
        assert (await asking).body["result"]["content"][0]["text"] == '{"done": true}'


async def test_a_session_is_not_idle_while_a_call_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[StreamableHTTP] = []
    init = StreamableHTTP.__init__

    def keep(self: StreamableHTTP, endpoint: Any) -> None:
        init(self, endpoint)
        found.append(self)

    monkeypatch.setattr(StreamableHTTP, "__init__", keep)
    held = Held()
    async with served(held) as (_, client):
        sessions = found[0]._sessions
        assert sessions is not None
        (transport,) = sessions._streams._server_instances.values()
        assert transport.idle_scope is not None
        before = transport.idle_scope.deadline
        asking = await under_way(client, held)
        assert transport.idle_scope.deadline == float("inf")
        held.go.set()
        await asking
        assert before <= transport.idle_scope.deadline < float("inf")


class As:
    """Puts the user whom a header names on each request, as an authentication middleware would."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope["headers"]).get(b"x-user", b"ann").decode()
        await self._app({**scope, "user": SimpleUser(name), "auth": AuthCredentials(["x"])}, receive, send)


async def test_a_session_answers_only_who_opened_it() -> None:
    held = Held()
    held.go.set()
    async with served(held) as (app, _):
        ann: Any = Twin(As(app), "")
        await ann.greet("/mcp")
        assert (await ann.ask(CALL)).status == 200
        assert (await ann.ask(CALL._replace(headers=[*CALL.headers, (b"x-user", b"bob")]))).status == 404


async def test_a_client_that_can_be_asked_is_served_by_the_sdk() -> None:
    held = Held()
    held.go.set()
    async with served(held, {"elicitation": {}}) as (_, client):
        assert (await client.ask(CALL)).headers[b"content-type"].startswith(b"text/event-stream")
        assert (await client.ask(message("tools/list", {}))).headers[b"content-type"] == b"application/json"
