"""Calls that the end of a project cuts off, in process: who called, through whom, and what is on record."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from faults.kit import Journal, fake, granted
from toolgrove import Config, Grove
from toolgrove.runners.runner import RunnableAgent
from toolgrove.types import Result
from waiting import DEADLINE

pytestmark = pytest.mark.anyio


class Persistent:
    """Runs an agent that calls a tool again and again, whatever comes back."""

    def __init__(self) -> None:
        self.answers = 0

    async def run(self, agent: RunnableAgent, task: str) -> Result:
        while True:
            await agent.call("up_hang")
            self.answers += 1


async def test_the_call_of_a_sub_agent_is_cut_off_with_the_one_that_started_it(journal: Journal) -> None:
    """The one that waits is told; the sub-agent's own call does not come back to be made again."""
    runner, answers = Persistent(), list[dict[str, Any]]()
    server = fake(journal=journal, timeout=3600, changes=["erase", "hang"])
    agents = {"a": {"role": "editor", "tools": ["*"]}, "b": {"role": "editor", "tools": ["up_hang"]}}
    config = Config.model_validate({"mcpServers": {"up": server}, "agents": agents, "startupBudget": 30})
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config, runner=runner) as grove, anyio.create_task_group() as tasks:
            agent = await granted(grove, "up_hang")

            async def spawn() -> None:
                tasks_of_b = [{"agent": "b", "input": "wait"}]
                answers.append(await agent.call("spawn_agents", {"agents": tasks_of_b}))

            tasks.start_soon(spawn)
            await journal.wrote("hangs")
            grove.cut_off()
    (told,) = answers
    assert told["error"]["reason"] == "cut_off", told
    assert runner.answers == 0
    ended = {record["operation"]: record["outcome"] for record in grove.audit}
    assert ended == {"up_hang": "unknown", "spawn_agents": "cancelled"}
