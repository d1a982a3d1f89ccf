"""A request that is dropped at the wrong moment leaves nothing behind that nobody comes to await."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.server.streamable_http import StreamableHTTPServerTransport

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from lane.test_differential import BRIDGE
from lane.twins import LEGACY, Asked, head_of, request
from lane.wire import Served, Wire, on_the_wire, raw
from mcp_serve.plain import Head
from mcp_serve.sdk_internals import in_use
from mcp_serve.shortcut import Entry
from modules import Add, registry_of

NOBODY = "nobody"
Then = Callable[[Wire], object]


class Moment:
    """The moment in which a request is let in: its bytes were read, and nothing of its answer is there yet."""

    def __init__(self) -> None:
        self.then: Callable[[], object] | None = None

    def come(self) -> None:
        if self.then is not None:
            self.then()


@asynccontextmanager
async def bridge(moment: Moment) -> AsyncIterator[Wire]:
    made = Bridge(registry_of({"math.add": Add()}), Options(transport="streamable-http"))
    app = made.app()

    def enter(path: str, head: Head, source: str) -> Entry | None:
        moment.come()
        return made.enter(path, head, source)

    async with on_the_wire(Served(app, enter, made.endpoint.drain)) as wire:
        yield wire


async def asked(then: Then, often: int) -> None:
    """Ask for the tools in a session, behind a head that was met so often, and see what happens at that moment."""
    moment = Moment()
    async with bridge(moment) as wire:
        one = await wire.connect()
        try:
            session = await one.greet(BRIDGE, NOBODY)
            body = json.dumps(request(LEGACY, "tools/list", {})).encode()
            listing = raw(Asked(head_of(LEGACY), body, path=BRIDGE), NOBODY, session)
            for _ in range(often):
                await one.ask(listing)
            moment.then = lambda: then(wire)
            one.write(listing)
            await one.ends()
        finally:
            one.close()


def everything_is_cancelled(wire: Wire) -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def everything_is_cancelled_next(wire: Wire) -> None:
    asyncio.get_running_loop().call_soon(everything_is_cancelled, wire)


@pytest.mark.parametrize("often", [0, 1, 2])
@pytest.mark.parametrize("then", [everything_is_cancelled, everything_is_cancelled_next])
def test_a_request_that_comes_as_everything_is_cancelled_leaves_nothing_behind(then: Then, often: int) -> None:
    with pytest.raises((asyncio.CancelledError, asyncio.IncompleteReadError)):
        asyncio.run(asked(then, often))
    gc.collect()  # what was left behind fails this test


@pytest.mark.parametrize("often", [0, 1, 2])
def test_a_request_that_comes_as_the_server_stops_is_answered(often: int) -> None:
    asyncio.run(asked(lambda wire: wire.stop.set(), often))
    gc.collect()


def test_a_session_in_use_can_be_left_after_its_loop_ended() -> None:
    transport = StreamableHTTPServerTransport("session")
    using = in_use(transport, 60)

    async def use() -> None:
        transport.idle_scope = anyio.CancelScope()
        using.__enter__()

    asyncio.run(use())
    using.__exit__(None, None, None)
