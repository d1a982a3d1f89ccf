"""Generated and hostile requests on the wire: met before or not, they are answered and recorded as without the lane."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio
import pytest
from hypothesis import HealthCheck, event, given, settings

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from grove_kit import ManualClock
from lane.test_differential import BRIDGE, EXAMPLES, GATEWAY, PROJECT, TOOLS, bodies, heads, requests
from lane.test_sessions import Held
from lane.test_shortcut import NOBODY, bridge, gateway, learned
from lane.twins import LEGACY, MODERN, SESSION, Answer, Asked, compared, head_of, request
from lane.wire import Served, Wire, calling, on_the_wire, parsed, raw
from mcp_serve import http_server
from mcp_serve.calls import CUT_OFF
from modules import Sample, echo, registry_of
from toolgrove import Config, Grove
from waiting import eventually

pytestmark = pytest.mark.anyio
TIMES = 3
"""The first time a head is new, the second it may be still, and then it is known."""


class Side(NamedTuple):
    """One of two servers, and who asks it."""

    wire: Wire
    token: str
    session: bytes

    async def ask(self, asked: Asked) -> Answer:
        """The answer, on a connection of its own."""
        connection = await self.wire.connect()
        answer = compared(parsed(*await connection.ask(raw(asked, self.token, self.session))))
        connection.close()
        answer.headers.pop(SESSION, None)
        return answer


@dataclass
class Sides:
    """A server with the shortcut, and one without the lane; of a gateway, both have one grove."""

    path: str
    quick: Side
    slow: Side
    runner: asyncio.Runner
    clock: ManualClock

    def same(self, asked: Asked) -> bool:
        """Hold both to the same answers; whether the last one came past the app."""
        self.clock.now += 10  # so that nobody has to wait who sent wrong tokens
        return self.runner.run(self._same(asked))

    async def _same(self, asked: Asked) -> bool:
        expected, before = await self.slow.ask(asked), 0
        for _ in range(TIMES):
            before = self.quick.wire.seen
            assert await self.quick.ask(asked) == expected, asked
        return self.quick.wire.seen == before


@asynccontextmanager
async def gateways(clock: ManualClock) -> AsyncIterator[tuple[Side, Side]]:
    async with Grove(Config.model_validate(PROJECT), clock=clock) as grove:
        token, first, second = grove.tokens.issue("writer"), grove.gateway(), grove.gateway()
        async with (
            on_the_wire(Served(first.app, first.enter, first.drain)) as quick,
            on_the_wire(Served(second.app, second.enter, second.drain), "off") as slow,
        ):
            yield await greeted(quick, GATEWAY, token), await greeted(slow, GATEWAY, token)


@asynccontextmanager
async def bridges(clock: ManualClock) -> AsyncIterator[tuple[Side, Side]]:
    modules = {"text.echo": Sample(echo)}
    async with bridge("on", **modules) as quick, bridge("off", **modules) as slow:
        yield await greeted(quick, BRIDGE, NOBODY), await greeted(slow, BRIDGE, NOBODY)


async def greeted(wire: Wire, path: str, token: str) -> Side:
    connection = await wire.connect()
    session = await connection.greet(path, token)
    connection.close()
    return Side(wire, token, session)


@pytest.fixture(scope="module", params=["gateway", "bridge"])
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    path, served = {"gateway": (GATEWAY, gateways), "bridge": (BRIDGE, bridges)}[request.param]
    clock = ManualClock()

    async def serve(ready: asyncio.Future[tuple[Side, Side]], done: asyncio.Event) -> None:
        async with served(clock) as both:
            ready.set_result(both)
            await done.wait()

    async def begin() -> tuple[tuple[Side, Side], asyncio.Event, asyncio.Task[None]]:
        ready, done = asyncio.get_running_loop().create_future(), asyncio.Event()
        serving = asyncio.create_task(serve(ready, done))
        await asyncio.wait([ready, serving], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        return ready.result(), done, serving

    async def end() -> None:
        done.set()
        await serving

    with asyncio.Runner() as runner:
        (quick, slow), done, serving = runner.run(begin())
        yield Sides(path, quick, slow, runner, clock)
        runner.run(end())


def test_generated_requests_are_answered_alike_on_the_wire(sides: Sides) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(sides.path))
    def alike(asked: Asked) -> None:
        event("past the app" if sides.same(asked) else "by the app")

    alike()


def test_what_clients_send_all_day_is_answered_alike_and_past_the_app(sides: Sides) -> None:
    name = TOOLS[sides.path][0]
    for era in (MODERN, LEGACY):
        for number, arguments in ((1, {"nodeId": "root", "a": 1, "b": 2}), ("x", {}), (-7, {"nodeId": "é\u2028"})):
            assert sides.same(calling(sides.path, name, arguments, era, number))
        listing = json.dumps(request(era, "tools/list", {})).encode()
        assert sides.same(Asked(head_of(era, "tools/list"), listing, path=sides.path))


def test_hostile_bodies_behind_a_head_that_was_met_are_refused_alike(sides: Sides) -> None:
    name = TOOLS[sides.path][0]
    for era in (MODERN, LEGACY):
        sides.same(calling(sides.path, name, {"nodeId": "root"}, era))
        for body in bodies(sides.path):
            sides.same(Asked(head_of(era, "tools/call", name), body, path=sides.path))


def test_hostile_heads_are_refused_alike_however_often_they_come(sides: Sides) -> None:
    for head in heads(sides.path):
        sides.same(calling(sides.path, TOOLS[sides.path][0], {"nodeId": "root"})._replace(headers=head))


async def test_a_body_in_chunks_and_one_that_waits_for_a_word_are_answered_behind_a_head_that_was_met() -> None:
    async with bridge() as wire:
        one, asked = await wire.connect(), calling(BRIDGE, "math.add", {"a": 1, "b": 2})
        data = raw(asked, NOBODY)
        await learned(wire, one, data)
        expected = (await one.ask(data))[1]
        chunked = raw(asked._replace(body=b"", headers=[*asked.headers, (b"transfer-encoding", b"chunked")]), NOBODY)
        chunked = chunked.replace(b"content-length: 0\r\n", b"")
        half = len(asked.body) // 2
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (asked.body[:half], asked.body[half:], b""))
        waiting = data.replace(b"content-length:", b"expect: 100-continue\r\ncontent-length:")
        for _ in range(TIMES):
            assert (await one.ask(chunked + chunks))[1] == expected
            one.write(waiting[: -len(asked.body)])
            assert await one.line() == b"HTTP/1.1 100 Continue\r\n"
            assert await one.line() == b"\r\n"
            assert (await one.ask(asked.body))[1] == expected
            assert (await one.ask(data))[1] == expected
        one.close()


async def test_a_call_that_does_not_end_is_cut_off_in_words_when_the_server_stops() -> None:
    held = Held()
    made = Bridge(registry_of({"held": held.module}), Options(transport="streamable-http"))
    app = made.app()

    async def drain(seconds: float) -> None:
        await made.endpoint.drain(0.0)

    async with on_the_wire(Served(app, made.enter, drain)) as wire:
        one = await wire.connect()
        held.go.set()
        data = raw(calling(BRIDGE, "held", {}), NOBODY)
        for _ in range(TIMES):
            await one.ask(data)
        held.begun, held.go = anyio.Event(), anyio.Event()
        one.write(data)
        await held.begun.wait()
        wire.stop.set()
        assert CUT_OFF in json.loads((await one.read())[1])["result"]["content"][0]["text"]
        held.go.set()
        assert await one.ends()
        one.close()


async def test_calls_are_recorded_alike_past_the_app() -> None:
    told: list[tuple[str, dict[str, Any]]] = [
        ("get_node", {"nodeId": "root"}),
        ("get_node", {}),
        ("delete_node", {"x": 1}),
    ]
    records = []
    for switch in ("on", "off"):
        async with gateway(switch) as (wire, grove, token):
            one = await wire.connect()
            session = await one.greet(GATEWAY, token)
            for era in (MODERN, LEGACY):
                for name, arguments in told:
                    for _ in range(TIMES):
                        await one.ask(raw(calling(GATEWAY, name, arguments, era), token, session))
            one.close()
            await eventually(lambda: "token.first_used" in [record["operation"] for record in grove.audit])
            records.append(sorted(facts(record, session) for record in grove.audit))
    assert records[0] == records[1]
    assert len(records[0]) > 2 * TIMES * len(told)


def facts(record: dict[str, Any], session: bytes) -> str:
    """What a record says, but for what is different each time."""
    random = ("timestamp", "callId", "runId", "durationMs", "number", "previous", "hash", "seal", "resultHash")
    left = {key: value for key, value in record.items() if key not in random}
    text = json.dumps(left, sort_keys=True).replace(session.decode(), "(the session)")
    return re.sub(r'"(version|token)": "[^"]*"', r'"\1": ""', text)


async def test_the_connection_that_has_been_idle_longest_gives_way_to_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "room", lambda: 2)
    async with bridge() as wire:
        one, two = await wire.connect(), await wire.connect()
        data = raw(calling(BRIDGE, "math.add", {"a": 1, "b": 2}), NOBODY)
        await learned(wire, two, data)
        await learned(wire, one, data)  # so that the second has been idle for longer
        three = await wire.connect()
        assert (await three.ask(data))[0].startswith(b"HTTP/1.1 200 ")
        assert await two.ends()
        assert (await one.ask(data))[0].startswith(b"HTTP/1.1 200 ")
        for connection in (one, two, three):
            connection.close()


async def test_a_connection_without_requests_is_closed_whichever_way_its_last_one_went() -> None:
    async with bridge() as wire:
        quick, slow = await wire.connect(), await wire.connect()
        data = raw(calling(BRIDGE, "math.add", {"a": 1, "b": 2}), NOBODY)
        await learned(wire, quick, data)
        assert (await slow.ask(data.replace(b"host: ", b"Host: ")))[0].startswith(b"HTTP/1.1 200 ")
        assert all(await asyncio.gather(quick.ends(), slow.ends()))
        quick.close()
        slow.close()
