"""After an outage: nobody queues for a server that is down, and one call finds out whether it is back."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from faults.kit import answers, error_of, fake, running
from faults.web import ANSWERS, Web
from grove_kit import ManualClock
from toolgrove import Agent

pytestmark = pytest.mark.anyio
HOUR = 3600.0


async def many(agent: Agent, count: int) -> list[dict[str, Any]]:
    """The answers to so many calls at once."""
    results: list[dict[str, Any]] = []

    async def call() -> None:
        results.append(await agent.call("bad_echo", {"text": "x"}))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(call)
        await answers(agent)
    return results


async def test_a_storm_of_calls_to_a_dead_server_is_kept_away_from_it_until_one_call_found_it_well() -> None:
    clock = ManualClock()
    with Web().serving() as web:
        async with running({"bad": {"url": web.url, "timeout": HOUR}, "well": fake()}, clock=clock) as grove:
            agent = await grove.agent("a")
            await answers(agent, "bad")
            web.faults["tools/call"] = ANSWERS["reset"]
            for _ in range(20):
                error_of(await agent.call("bad_echo", {"text": "x"}))
            before = web.counted("tools/call")
            errors = [error_of(result) for result in await many(agent, 1_000)]
            assert web.counted("tools/call") == before
            assert {error["reason"] for error in errors} == {"upstream_unavailable"}
            told = {error["retryAfter"] for error in errors}
            assert len(told) > 10, "all told the same moment would come back together"
            clock.now += 60
            await many(agent, 100)
            assert web.counted("tools/call") == before + 1, "one call finds out"
            clock.now += 60
            web.faults.clear()
            await answers(agent, "bad")
            assert all("error" not in result for result in await many(agent, 100))


async def test_a_tool_that_fails_in_its_own_words_does_not_open_the_breaker() -> None:
    async with running({"up": fake()}) as grove:
        agent = await grove.agent("a")
        for _ in range(50):
            assert (await agent.call("up_refuse"))["isError"] is True
        await answers(agent, "up")
