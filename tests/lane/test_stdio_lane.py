"""Plain lines of stdio are answered past the SDK, in both eras, and can be cancelled; all others go to it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from lane.test_sessions import Held
from lane.twins import LEGACY, MODERN, request
from mcp_serve import stdio
from mcp_serve.line import Line
from mcp_serve.signals import Stop
from mcp_serve.switch import SWITCH
from modules import Add, registry_of
from waiting import DEADLINE

pytestmark = pytest.mark.anyio


class Peer:
    """The client at the other end of two pipes."""

    def __init__(self, into: int, out: int) -> None:
        self._into = into
        self._out = os.fdopen(out, "rb")

    def put(self, *messages: Any) -> None:
        for message in messages:
            text = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self._into, text + b"\n")

    async def take(self) -> dict[str, Any]:
        with anyio.fail_after(DEADLINE):
            line = await asyncio.to_thread(self._out.readline)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, message: Any) -> dict[str, Any]:
        self.put(message)
        return await self.take()

    async def greet(self, version: str = LEGACY, capabilities: dict[str, Any] | None = None) -> None:
        me = {"name": "peer", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": me}
        await self.ask({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
        self.put({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number in range(3):  # what was told is taken up in the background
            await self.ask({"jsonrpc": "2.0", "id": number, "method": "ping"})


@asynccontextmanager
async def served(held: Held | None = None) -> AsyncIterator[Peer]:
    """A bridge over two pipes, in this process."""
    modules = {"add": Add(), **({} if held is None else {"held": held.module})}
    bridge = Bridge(registry_of(modules), Options())
    (source, into), (out, target) = os.pipe(), os.pipe()
    stop = Stop()
    async with bridge.running():
        ends = stdio._Input(source), stdio._Output(target)
        serving = asyncio.create_task(stdio._serve(bridge.endpoint, stop, _nothing(), *ends))
        peer = Peer(into, out)
        try:
            yield peer
        finally:
            if held is not None:
                held.go.set()
            os.close(into)
            with anyio.fail_after(DEADLINE):
                await serving
            os.close(target)
            peer._out.close()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The ids of the requests that take the lane."""
    ids: list[Any] = []
    answer = Line.answer

    def noted(self: Line, request: Any, user: Any) -> Any:
        answered = answer(self, request, user)
        if answered is not None:
            ids.append(request.id)
        return answered

    monkeypatch.setattr(Line, "answer", noted)
    return ids


def call(era: str, number: Any, a: Any = 1, name: str = "add") -> dict[str, Any]:
    return request(era, "tools/call", {"name": name, "arguments": {"a": a, "b": 1}}, number)


async def test_the_second_request_of_a_2026_client_takes_the_lane(taken: list[Any]) -> None:
    async with served() as peer:
        first = await peer.ask(call(MODERN, 1))
        second = await peer.ask(call(MODERN, 2))
        assert taken == [2]
        assert second == {**first, "id": 2}
        listed = await peer.ask(request(MODERN, "tools/list", {}, 3))
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["add"]


async def test_after_the_handshake_requests_take_the_lane(taken: list[Any]) -> None:
    async with served() as peer:
        await peer.greet()
        taken.clear()
        answer = await peer.ask(call(LEGACY, 7, 41))
        assert taken == [7]
        assert answer["result"]["structuredContent"] == {"sum": 42}
        assert (await peer.ask(request(LEGACY, "ping", {}, 8)))["result"] == {}


@pytest.mark.parametrize("version", ["2025-06-18", "2024-11-05"])
async def test_sessions_of_other_versions_stay_with_the_sdk(version: str, taken: list[Any]) -> None:
    async with served() as peer:
        await peer.greet(version)
        assert (await peer.ask(call(LEGACY, 7)))["id"] == 7
        assert taken == []


async def test_odd_lines_are_answered_as_before(taken: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [
        call(LEGACY, 10),
        {**call(MODERN, 11), "method": "initialize"},
        {**call(MODERN, 12), "params": {"name": "add"}},
        {**call(MODERN, 13), "method": "nothing"},
        json.dumps(call(MODERN, 14)).replace('"a": 1', '"a": 1, "a": 5').encode(),
        json.dumps(call(MODERN, 15)).replace('"a": 1', '"a": NaN').encode(),
        call(MODERN, 16, name="nothing"),
        {**call(MODERN, 17), "id": 2**60},
    ]
    answers = []
    for switch in ("on", "off"):
        monkeypatch.setenv(SWITCH, switch)
        async with served() as peer:
            await peer.ask(call(MODERN, 1))
            answers.append([await peer.ask(one) for one in odd])
    assert answers[0] == answers[1]
    assert taken == [16]


async def test_a_connection_that_begins_with_what_readers_read_differently_stays_with_the_sdk(taken: list[Any]) -> None:
    async with served() as peer:
        twice = json.dumps(call(MODERN, 1)).replace('"id": 1', '"id": 0, "id": 1')
        await peer.ask(twice.encode())
        assert (await peer.ask(call(MODERN, 2)))["id"] == 2
        assert taken == []


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_cancelled_call_ends_without_an_answer(era: str, taken: list[Any]) -> None:
    held = Held()
    async with served(held) as peer:
        await (peer.greet() if era == LEGACY else peer.ask(call(MODERN, 1)))
        peer.put(call(era, "slow", name="held"))
        with anyio.fail_after(DEADLINE):
            await held.begun.wait()
        assert "slow" in taken
        peer.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
        with anyio.fail_after(DEADLINE):
            while held.ended != "cancelled":
                await anyio.sleep(0.001)
        assert (await peer.ask(call(era, "next")))["id"] == "next"


async def test_answers_under_way_at_the_end_are_delivered() -> None:
    async with served() as peer:
        await peer.ask(call(MODERN, 1))
        peer.put(*(call(MODERN, number) for number in range(2, 30)))
        answered = {(await peer.take())["id"] for _ in range(2, 30)}
    assert answered == set(range(2, 30))


async def test_who_can_be_asked_is_served_by_the_sdk(taken: list[Any]) -> None:
    async with served() as peer:
        await peer.greet(capabilities={"elicitation": {}})
        await peer.ask(call(LEGACY, 7))
        await peer.ask(request(LEGACY, "tools/list", {}, 8))
        assert 7 not in taken
        assert 8 in taken
