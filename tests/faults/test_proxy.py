"""The network between us and a server: late, silent, broken in the middle; everything else goes on."""

from __future__ import annotations

import anyio
import pytest

from faults.kit import answers, beside, error_of, fake, recovers, running
from faults.proxy import Proxy
from faults.web import Web, blackhole

pytestmark = pytest.mark.anyio
HOUR = 3600.0


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("after", [0, 1, 20, 150])
async def test_an_answer_that_is_cut_fails_that_call_and_the_next_one_works(after: int, streams: bool) -> None:
    with Web(streams=streams).serving() as web, Proxy(target=web.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with running({"far": {"url": url, "timeout": HOUR}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "far")
            proxy.cut_after = after
            error = error_of(await beside(agent, agent.call("far_echo", {"text": "x"})))
            assert error["reason"] == "upstream_unavailable"
            proxy.cut_after = None
            await recovers(agent, "far")


async def test_a_connection_that_is_reset_in_a_call_fails_that_call() -> None:
    with Web().serving() as web, Proxy(target=web.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with running({"far": {"url": url, "timeout": HOUR}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            calls = web.counted("tools/call")
            results = []

            async def call() -> None:
                results.append(await agent.call("far_hold", {"text": "x"}))

            web.faults["tools/call"] = blackhole
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                while web.counted("tools/call") == calls:
                    await anyio.sleep(0.01)
                proxy.reset()
            assert error_of(results[0])["reason"] == "upstream_unavailable"
            assert web.counted("tools/call") == calls + 1
            web.faults.clear()
            await recovers(agent, "far")


async def test_a_silent_network_ends_with_the_time_of_the_call() -> None:
    with Web().serving() as web, Proxy(target=web.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with running({"far": {"url": url, "timeout": 0.5}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            proxy.blackhole = True
            error = error_of(await beside(agent, agent.call("far_echo", {"text": "x"})))
            assert error["reason"] == "timeout"
            proxy.blackhole = False
            await recovers(agent, "far")


async def test_slow_calls_do_not_take_the_places_of_others() -> None:
    """A full house at one server, while another answers hundreds of calls."""
    with Web().serving() as web, Proxy(target=web.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with running({"far": {"url": url, "timeout": HOUR, "concurrency": 4}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            proxy.blackhole = True
            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(agent.call, "far_echo", {"text": "x"})
                for _ in range(200):
                    await answers(agent)
                tasks.cancel_scope.cancel()


async def test_a_slow_network_delays_only_who_uses_it() -> None:
    with Web().serving() as web, Proxy(target=web.port, latency=0.1).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with running({"far": {"url": url}, "well": fake()}, budget=5.0) as grove:
            agent = await grove.agent("a")
            order: list[str] = []

            async def call(server: str) -> None:
                await answers(agent, server)
                order.append(server)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, "far")
                await anyio.wait_all_tasks_blocked()
                for _ in range(3):
                    await call("well")
            assert order == ["well", "well", "well", "far"]
