"""After an outage: nobody queues for a server that is down, and one call finds out whether it is back."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from faults.kit import answers, error_of, fake, granted, running
from faults.web import ANSWERS, Web

pytestmark = pytest.mark.anyio
HOUR = 3600.0


async def test_a_thousand_calls_to_a_dead_server_all_fail_at_once_with_a_hint_when_to_come_back() -> None:
    with Web().serving() as web:
        async with running({"bad": {"url": web.url, "timeout": HOUR}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "bad")
            web.faults["*"] = ANSWERS["reset"]
            for _ in range(20):
                await agent.call("bad_echo", {"text": "x"})
            before = len(web.requests)
            errors: list[dict[str, Any]] = []

            async def call() -> None:
                errors.append(error_of(await agent.call("bad_echo", {"text": "x"})))

            async with anyio.create_task_group() as tasks:
                for _ in range(1_000):
                    tasks.start_soon(call)
                await answers(agent)
            assert len(errors) == 1_000
            assert {error["code"] for error in errors} == {"internal"}
            told = [error["retryAfter"] for error in errors if "retryAfter" in error]
            assert len(told) > 900
            assert len(set(told)) > 10, "all told the same moment would come back together"
            assert len(web.requests) - before < 100, "the breaker keeps the storm away from the server"
            web.faults.clear()
            await answers(await granted(grove, "bad_echo"), "bad")


async def test_a_tool_that_fails_in_its_own_words_does_not_open_the_breaker() -> None:
    async with running({"up": fake()}) as grove:
        agent = await grove.agent("a")
        for _ in range(50):
            assert error_of(await agent.call("up_refuse"))["code"] == "internal"
        await answers(agent, "up")
