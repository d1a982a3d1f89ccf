"""One agent at full tilt takes no server, no host and no thread away from another."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import anyio
import pytest
from apcore import Registry
from pydantic import BaseModel

from faults.kit import Journal, error_of, fake, running, text_of
from grove_kit import ManualClock
from toolgrove import Agent, Config, Grove
from toolgrove.pool.extensions import THREADS
from toolgrove.pool.fair_shares import GREED
from waiting import DEADLINE, eventually
from web.held import holding

pytestmark = pytest.mark.anyio
HOUR = 3600.0


async def test_an_agent_that_floods_a_server_is_told_to_wait_and_the_others_are_served(journal: Journal) -> None:
    async with running({"up": fake(journal=journal, concurrency=8, timeout=HOUR)}) as grove:
        flooder, other = await grove.agent("a"), await grove.agent("reader")
        refusals: Counter[str] = Counter()

        async def flood() -> None:
            refusals[error_of(await flooder.call("up_hold", {"text": "x"}))["code"]] += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(300):
                tasks.start_soon(flood)
            await journal.wrote("holds", 6)
            await eventually(lambda: refusals.total() > 100)
            for _ in range(20):
                assert text_of(await other.call("up_echo", {"text": "me too"})) == "me too"
            assert refusals.keys() == {"rate_limited"}
            tasks.cancel_scope.cancel()


async def test_time_spent_in_line_is_no_fault_of_the_server(journal: Journal) -> None:
    """Calls that wait for a place until they may wait no longer leave the breaker as it was."""
    async with running({"up": fake(journal=journal, concurrency=1, timeout=0.5)}) as grove:
        agent, other = await grove.agent("a"), await grove.agent("reader")
        reasons: list[str] = []

        async def queue() -> None:
            reasons.append(error_of(await agent.call("up_hold", {"text": "x"}))["reason"])

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(queue)
        assert "upstream_busy" in reasons
        assert text_of(await other.call("up_echo", {"text": "well"})) == "well"


async def test_the_calls_that_one_agent_lets_time_out_stop_that_agent_alone(journal: Journal) -> None:
    """The server is well: it is one agent that asks it for what takes too long."""
    async with running({"up": fake(journal=journal, concurrency=16, timeout=0.5)}, clock=ManualClock()) as grove:
        agent, other = await grove.agent("a"), await grove.agent("reader")
        reasons: list[str] = []

        async def wait() -> None:
            reasons.append(error_of(await agent.call("up_hold", {"text": "x"}))["reason"])

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(wait)
        assert reasons == ["timeout"] * 12
        assert error_of(await agent.call("up_echo", {"text": "me"}))["reason"] == "upstream_unavailable"
        assert text_of(await other.call("up_echo", {"text": "well"})) == "well"


async def test_an_agent_that_floods_a_host_is_told_to_wait_and_the_others_are_served() -> None:
    with anyio.fail_after(DEADLINE):
        async with holding() as held:
            agents = {name: {"role": "editor", "tools": ["*"]} for name in ("a", "b")}
            tools = {"hold": held.tool(), "hold_too": held.tool()}
            async with Grove(Config.model_validate({"httpTools": tools, "agents": agents})) as grove:
                flooder, other = await grove.agent("a"), await grove.agent("b")
                answers: list[dict[str, Any]] = []

                async def flood(key: str) -> None:
                    answers.append(await flooder.call("hold", {"key": key}))

                async with anyio.create_task_group() as tasks:
                    for number in range(1_000):
                        tasks.start_soon(flood, f"k{number}")
                    await eventually(lambda: len(answers) > 500 and len(held.arrived) == 12)
                    assert {error_of(answer)["code"] for answer in answers} == {"rate_limited"}
                    assert all(error_of(answer)["retryAfter"] > 0 for answer in answers)
                    held.release("mine")
                    assert (await other.call("hold_too", {"key": "mine"}))["body"] == {"key": "mine"}
                    tasks.cancel_scope.cancel()


class _Nothing(BaseModel):
    pass


class _Module:
    """Blocks its thread until told to go on, or answers at once."""

    description = "Wait"
    input_schema = output_schema = _Nothing

    def __init__(self, gate: threading.Event | None, timeout: int | None = None) -> None:
        self._gate = gate
        self.ended = 0
        if timeout is not None:
            self.resources = {"timeout": timeout}

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        if self._gate is not None:
            self._gate.wait(DEADLINE)
            self.ended += 1
        return {}


async def test_an_agent_that_blocks_threads_leaves_one_for_the_others() -> None:
    gate = threading.Event()
    registry = Registry()
    registry.register("blocks", _Module(gate))
    registry.register("quick", _Module(None))
    agents = {name: {"role": "editor", "tools": ["*"]} for name in ("a", "b")}
    async with Grove(Config.model_validate({"agents": agents}), extensions=registry) as grove:
        blocker, other = await grove.agent("a"), await grove.agent("b")
        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(blocker.call, "blocks")
            await anyio.wait_all_tasks_blocked()
            try:
                assert await other.call("quick") == {}
                assert not gate.is_set()
            finally:
                gate.set()


async def test_threads_that_calls_leave_behind_count_for_their_agent_and_for_nobody_else() -> None:
    """A module that runs on after its time is up has its thread still; whose calls do so soon gets no more."""
    gate = threading.Event()
    blocks = _Module(gate, timeout=20)
    registry = Registry()
    registry.register("blocks", blocks)
    registry.register("quick", _Module(None))
    agents = {name: {"role": "editor", "tools": ["*"]} for name in ("a", "b", "c")}
    async with Grove(Config.model_validate({"agents": agents}), extensions=registry) as grove:
        try:
            left = {}
            for name in ("a", "b"):
                agent = await grove.agent(name)
                errors = [error_of(await agent.call("blocks")) for _ in range(GREED * THREADS + 1)]
                left[name] = sum(error["reason"] == "timeout" for error in errors)
                error = errors[-1]
                assert (error["code"], error["reason"]) == ("rate_limited", "upstream_busy")
                assert error["retryAfter"] > 0
            assert left == dict.fromkeys(("a", "b"), GREED * THREADS)
            other = await grove.agent("c")
            async with anyio.create_task_group() as tasks:
                for _ in range(2 * THREADS):
                    tasks.start_soon(_quick, other)
        finally:
            gate.set()
        await eventually(lambda: blocks.ended == sum(left.values()))
        assert await (await grove.agent("a")).call("quick") == {}


async def _quick(agent: Agent) -> None:
    assert await agent.call("quick") == {}
