"""Plain requests on the wire: from the second one with a head on they are answered without the app, and alike."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from mcp_types import Tool
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from grove_kit import ManualClock
from lane.test_differential import BRIDGE, GATEWAY, PROJECT, TOOLS
from lane.test_sessions import Held
from lane.twins import LEGACY, MODERN, Asked, head_of, request
from lane.wire import Connection, Served, Wire, calling, on_the_wire, raw
from mcp_serve import quick_http
from mcp_serve.calls import ToolRun
from mcp_serve.endpoint import Endpoint
from mcp_serve.guard import Hosts
from mcp_serve.http import StreamableHTTP
from mcp_serve.lane import Lane
from mcp_serve.shortcut import everybody
from mcp_serve.table import ToolEntry
from modules import Add, registry_of
from toolgrove import Config, Grove
from toolgrove.store.state import hashed
from toolgrove.web.projects import entrance_of, index_of
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
NOBODY, HOST = "nobody", "127.0.0.1"


@asynccontextmanager
async def gateway(switch: str = "on") -> AsyncIterator[tuple[Wire, Grove, str]]:
    async with Grove(Config.model_validate(PROJECT), clock=ManualClock()) as grove:
        token = grove.tokens.issue("writer")
        made = grove.gateway()
        async with on_the_wire(Served(made.app, made.enter, made.drain), switch) as wire:
            yield wire, grove, token


@asynccontextmanager
async def bridge(switch: str = "on", **modules: Any) -> AsyncIterator[Wire]:
    made = Bridge(registry_of({"math.add": Add(), **modules}), Options(transport="streamable-http"))
    app = made.app()
    async with on_the_wire(Served(app, made.enter, made.endpoint.drain), switch) as wire:
        yield wire


def node(answer: tuple[bytes, bytes]) -> Any:
    return json.loads(answer[1])["result"]["structuredContent"]["nodeId"]


def without_date(head: bytes) -> list[bytes]:
    return [line for line in head.split(b"\r\n") if not line.startswith(b"date:")]


async def learned(wire: Wire, one: Connection, data: bytes) -> None:
    """Let the server meet a head, until its requests no longer reach the app."""
    for _ in range(5):
        before = wire.seen
        await one.ask(data)
        if wire.seen == before:
            return
    raise AssertionError("it always reaches the app")


async def test_a_request_with_a_head_that_was_met_is_answered_alike_without_the_app() -> None:
    async with gateway() as (wire, _, token):
        one = await wire.connect()
        data = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token)
        first = await one.ask(data)
        assert wire.seen == 1
        await learned(wire, one, data)
        seen = wire.seen
        again = await one.ask(data)
        assert (without_date(again[0]), again[1]) == (without_date(first[0]), first[1])
        longer = await one.ask(raw(calling(GATEWAY, "get_node", {"nodeId": "root"}, number="an id"), token))
        assert node(longer) == "root"
        other = await wire.connect()
        assert node(await other.ask(data)) == "root"
        assert wire.seen == seen
        one.close()
        other.close()


async def test_sessions_of_the_older_era_take_the_same_way() -> None:
    async with gateway() as (wire, _, token):
        one = await wire.connect()
        session = await one.greet(GATEWAY, token)
        data = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}, LEGACY), token, session)
        await learned(wire, one, data)
        seen = wire.seen
        head, body = await one.ask(data)
        assert node((head, body)) == "root"
        assert b"\r\nmcp-session-id: " + session in head
        assert wire.seen == seen
        one.close()


async def test_switched_off_every_request_reaches_the_app() -> None:
    async with gateway("off") as (wire, _, token):
        one = await wire.connect()
        for count in range(1, 4):
            assert node(await one.ask(raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token))) == "root"
            assert wire.seen == count
        one.close()


async def test_a_token_that_was_revoked_is_refused_behind_a_head_that_was_met() -> None:
    async with gateway() as (wire, grove, token):
        clock = grove.clock
        assert isinstance(clock, ManualClock)
        one = await wire.connect()
        data = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token)
        await learned(wire, one, data)
        grove.tokens.revoke(hashed(token))
        clock.now += 2
        head, _ = await one.ask(data)
        assert head.startswith(b"HTTP/1.1 401 ")
        one.close()


async def test_requests_in_one_packet_are_answered_in_their_order() -> None:
    async with gateway() as (wire, _, token):
        one = await wire.connect()
        data = [raw(calling(GATEWAY, "get_node", {"nodeId": "root"}, number=number), token) for number in range(5)]
        await learned(wire, one, data[0])
        one.write(b"".join(data))
        assert [json.loads((await one.read())[1])["id"] for _ in data] == [0, 1, 2, 3, 4]
        one.write(data[0] + data[1][:-1])
        assert node(await one.read()) == "root"
        one.write(data[1][-1:])
        assert json.loads((await one.read())[1])["id"] == 1
        one.close()


async def test_a_request_in_pieces_is_answered_wherever_it_is_cut() -> None:
    async with gateway() as (wire, _, token):
        one = await wire.connect()
        data = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token)
        await learned(wire, one, data)
        for cut in range(1, len(data), 37):
            one.write(data[:cut])
            for _ in range(3):  # so that it is read by itself
                await asyncio.sleep(0)
            assert node(await one.ask(data[cut:])) == "root"
        one.close()


def oddly(data: bytes, token: bytes) -> list[bytes]:
    """The same request, its head written so that two readers could read it differently."""
    host = b"host: 127.0.0.1:8000\r\n"
    return [
        b"\r\n" + data,
        data.replace(host, b"host: 127.0.0.1:8000\n", 1),
        data.replace(host, host * 2, 1),
        data.replace(host, host + b" folded\r\n", 1),
        data.replace(host, host + b"content-length: 5\r\n", 1),
        data.replace(host, host + b"transfer-encoding: chunked\r\n", 1),
        data.replace(host, b"host : 127.0.0.1:8000\r\n", 1),
        data.replace(host, b"host:127.0.0.1:8000\r\n", 1),
        data.replace(host, b"Host: 127.0.0.1:8000\r\n", 1),
        data.replace(host, b"host: evil.example\r\n", 1),
        data.replace(host, host + b"origin: http://evil.example\r\n", 1),
        data.replace(host, host + b"connection: close\r\n", 1),
        data.replace(b"content-length: ", b"content-length: +", 1),
        data.replace(b"content-length: ", b"content-length: 0", 1),
        data.replace(b" HTTP/1.1", b" HTTP/1.0", 1),
        data.replace(b"POST ", b"PUT ", 1),
        data.replace(b"/mcp ", b"/mcp?x ", 1),
        data.replace(b"writer", b"wr%69ter", 1),
        data.replace(b"writer", b"reader", 1),
        data.replace(token, b"wrong", 1),
        data.replace(b"mcp-name: get_node", b"mcp-name: get_nodes", 1),
        data.replace(b'"jsonrpc"', b'"jsonrpc":"2.0","jsonrpc"', 1),
    ]


async def test_odd_requests_behind_a_head_that_was_met_are_answered_as_without_the_lane() -> None:
    async with gateway() as (wire, _, token), gateway("off") as (slow, _, other):
        data = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token)
        theirs = raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), other)
        one = await wire.connect()
        await learned(wire, one, data)
        one.close()
        for mine, yours in zip(oddly(data, token.encode()), oddly(theirs, other.encode()), strict=True):
            answers = []
            for server, text in ((wire, mine), (wire, mine), (slow, yours)):
                connection = await server.connect()
                head, body = await connection.ask(text)
                kind = [line for line in head.lower().split(b"\r\n") if line.startswith((b"http/", b"connection"))]
                answers.append((kind, _said(body)))
                connection.close()
            assert answers[0] == answers[1] == answers[2], mine


def _said(body: bytes) -> Any:
    try:
        said = json.loads(body)
    except ValueError:
        return body
    if isinstance(said, dict) and "structuredContent" in said.get("result", {}):
        return said["result"]["structuredContent"]["nodeId"]
    return said


async def test_a_list_of_tools_is_answered_alike_the_second_time() -> None:
    async with bridge() as wire:
        one = await wire.connect()
        body = json.dumps(request(MODERN, "tools/list", {})).encode()
        data = raw(Asked(head_of(MODERN, "tools/list"), body, path=BRIDGE), NOBODY)
        first = await one.ask(data)
        await learned(wire, one, data)
        assert (await one.ask(data))[1] == first[1]
        one.close()


async def test_a_call_that_takes_long_ends_when_its_client_goes_away() -> None:
    held = Held()
    async with bridge(held=held.module) as wire:
        one, other = await wire.connect(), await wire.connect()
        name = TOOLS[BRIDGE][0]
        await learned(wire, one, raw(calling(BRIDGE, name, {"a": 1, "b": 2}), NOBODY))
        data = raw(calling(BRIDGE, "held", {}), NOBODY)
        one.write(data)
        await held.begun.wait()
        held.go.set()
        assert json.loads((await one.read())[1])["result"]["isError"] is False
        again = Held()
        held.begun, held.go, held.ended = again.begun, again.go, "not yet"
        other.write(data)
        await held.begun.wait()
        other.close()
        await eventually(lambda: held.ended == "cancelled")
        held.go.set()
        one.close()


async def test_a_call_under_way_is_answered_when_the_server_stops() -> None:
    held = Held()
    async with bridge(held=held.module) as wire:
        one = await wire.connect()
        held.go.set()
        data = raw(calling(BRIDGE, "held", {}), NOBODY)
        await learned_held(one, data)
        again = Held()
        held.begun, held.go, held.ended = again.begun, again.go, "not yet"
        one.write(data)
        await held.begun.wait()
        wire.stop.set()
        await asyncio.sleep(0)
        held.go.set()
        assert json.loads((await one.read())[1])["result"]["isError"] is False
        assert await one.ends()
        one.close()


async def learned_held(one: Connection, data: bytes) -> None:
    for _ in range(3):
        await one.ask(data)


async def test_projects_side_by_side_are_asked_past_the_app_each_by_its_own_tokens() -> None:
    project = Config.model_validate(PROJECT)
    async with Grove(project, clock=ManualClock()) as one, Grove(project, clock=ManualClock()) as other:
        tokens = {"one": one.tokens.issue("writer"), "other": other.tokens.issue("writer")}
        gateways = {"one": one.gateway(), "other": other.gateway()}
        app = Starlette(routes=[Mount("/", index_of({name: made.app for name, made in gateways.items()}, HOST, ()))])
        enter = entrance_of({name: made.enter for name, made in gateways.items()})
        async with (
            gateways["one"].app.router.lifespan_context(gateways["one"].app),
            gateways["other"].app.router.lifespan_context(gateways["other"].app),
            on_the_wire(Served(app, enter, gateways["one"].drain)) as wire,
        ):
            connection = await wire.connect()
            for name, token in tokens.items():
                data = raw(calling(f"/p/{name}{GATEWAY}", "get_node", {"nodeId": "root"}), token)
                await learned(wire, connection, data)
                assert node(await connection.ask(data)) == "root"
                elsewhere = data.replace(f"/p/{name}/".encode(), b"/p/one/" if name == "other" else b"/p/other/")
                assert (await connection.ask(elsewhere))[0].startswith(b"HTTP/1.1 401 ")
            connection.close()


class Talking:
    """A table of one tool, which logs before or after it waits, or after its answer, if it is told to."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.go, self.ended = asyncio.Event(), asyncio.Event()
        self.later: asyncio.Task[None] | None = None
        self._at_once = at_once
        schema = {"type": "object", "properties": {"aloud": {"enum": ["first", "last", "too late"]}}}
        self._entries = {"talk": ToolEntry(tool=Tool(name="talk", input_schema=schema))}

    def entries(self) -> dict[str, ToolEntry]:
        return self._entries

    def entry(self, name: str) -> ToolEntry | None:
        return self._entries.get(name)

    async def run(self, name: str, arguments: dict[str, Any] | None, run: ToolRun) -> dict[str, Any]:
        if not self._at_once:
            await asyncio.sleep(0)  # so that the answer is awaited
        aloud = (arguments or {}).get("aloud")
        if aloud == "too late":
            self.later = asyncio.create_task(self._log_late(run))
        if aloud == "first":
            await run.log("warning", "hello", "talk")
        if aloud in ("first", "last"):
            await self.go.wait()
        if aloud == "last":
            await run.log("warning", "hello", "talk")
            self.ended.set()
        return {"content": [{"type": "text", "text": "done"}], "isError": False}

    async def _log_late(self, run: ToolRun) -> None:
        await self.go.wait()
        await run.log("warning", "hello", "talk")


@asynccontextmanager
async def talk(talking: Talking) -> AsyncIterator[tuple[Wire, Connection, Callable[[str | None], bytes]]]:
    """A client in a session whose head the server knows, and what it sends."""
    endpoint = Endpoint("t", "1", talking, talking.run, in_place=True, logs=lambda: True)
    mcp = StreamableHTTP(endpoint)
    app = Starlette(routes=mcp.routes, middleware=[Middleware(Lane, find=mcp.line)], lifespan=lambda app: mcp.running())
    async with on_the_wire(Served(app, everybody(Hosts(HOST), mcp.at), endpoint.drain)) as wire:
        one = await wire.connect()
        session = await one.greet("/mcp", NOBODY)

        def asking(aloud: str | None) -> bytes:
            arguments = {} if aloud is None else {"aloud": aloud}
            return raw(calling("/mcp", "talk", arguments, LEGACY, number=aloud or "quiet"), NOBODY, session)

        await learned(wire, one, asking(None))
        yield wire, one, asking
        one.close()


async def test_a_tool_that_speaks_while_its_answer_is_awaited_is_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_http, "WATCH_AFTER", DEADLINE)
    talking = Talking()
    async with talk(talking) as (_, one, asking):
        one.write(asking("first"))
        heard = [await one.line()]
        while not heard[-1].startswith(b"data:"):
            heard.append(await one.line())
        assert heard[0] == b"HTTP/1.1 200 OK\r\n"
        assert json.loads(heard[-1][5:])["params"]["data"] == "hello"
        talking.go.set()
        while b"result" not in heard[-1]:
            heard.append(await one.line())
        assert json.loads(heard[-1][5:])["result"]["content"][0]["text"] == "done"


async def test_a_tool_that_speaks_to_a_session_whose_client_went_away_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_http, "WATCH_AFTER", DEADLINE)
    talking = Talking()
    async with talk(talking) as (wire, one, asking):
        other = await wire.connect()
        one.write(asking("last"))
        one.close()
        for _ in range(3):  # by then the server has seen that the first one is gone
            assert b"done" in (await other.ask(asking(None)))[1]
        talking.go.set()
        async with asyncio.timeout(DEADLINE):
            await talking.ended.wait()
        other.close()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("is_known", [True, False])
async def test_what_a_tool_says_after_its_answer_goes_nowhere(*, at_once: bool, is_known: bool) -> None:
    talking = Talking(at_once=at_once)
    async with talk(talking) as (_, one, asking):
        data = asking("too late")
        if not is_known:
            data = data.replace(b"\r\n", b"\r\nX-Odd: 1\r\n", 1)
        assert b"done" in (await one.ask(data))[1]
        assert talking.later is not None
        talking.go.set()
        async with asyncio.timeout(DEADLINE):
            await talking.later
        status, body = await one.ask(asking(None))
        assert status.startswith(b"HTTP/1.1 200 ")
        assert b"hello" not in body


@contextmanager
def only_collected() -> Iterator[list[str]]:
    """What of ours goes in the meantime because the garbage collector finds it, by the names of its classes."""
    found: list[str] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [type(one) for one in gc.garbage]
        found += [kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] in ("mcp_serve", "toolgrove")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_answered_call_leaves_nothing_to_the_garbage_collector(*, at_once: bool) -> None:
    async with talk(Talking(at_once=at_once)) as (wire, one, asking):
        newer = raw(calling("/mcp", "talk", {}, MODERN), NOBODY)
        await learned(wire, one, newer)
        with only_collected() as found:
            for _ in range(10):
                await one.ask(asking(None))
                await one.ask(newer)
        assert found == []
