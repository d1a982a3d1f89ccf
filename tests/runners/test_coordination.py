"""spawn_agents and list_available_agents: answers side by side, one failure its own, everything bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from toolgrove import Agent, Config, Grove
from toolgrove.errors import RunFailed
from toolgrove.pool.coordination import AT_ONCE, PER_CALL, PER_RUN
from toolgrove.runners import RunnableAgent

pytestmark = pytest.mark.anyio
DEADLINE = 30
AGENTS: dict[str, Any] = {
    "coordinator": {"tools": ["get_*", "spawn_agents", "list_available_agents"], "mayDelegate": ["search"]},
    "researcher": {"description": "Looks things up.", "tools": ["get_node", "search", "remove_node"], "role": "editor"},
    "writer": {"tools": ["spawn_agents", "get_node"], "maxDepth": 5, "maySpawn": ["writer"]},
}


class Doing:
    """A runner without a model: what an agent does is a function of the test's own."""

    def __init__(self, work: Callable[[RunnableAgent, str], Awaitable[str]]) -> None:
        self._work = work

    async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
        return {"output": await self._work(agent, task), "steps": 1}


async def echo(agent: RunnableAgent, task: str) -> str:
    return f"{agent.name}: {task}"


def project(work: Callable[[RunnableAgent, str], Awaitable[str]] | None = echo) -> Grove:
    return Grove(Config.model_validate({"agents": AGENTS}), runner=None if work is None else Doing(work))


async def coordinator(grove: Grove) -> Agent:
    return await grove.agent("coordinator")


def tasks_for(*names: str) -> dict[str, Any]:
    return {"agents": [{"agent": name, "input": f"task {number}"} for number, name in enumerate(names)]}


async def test_answers_come_in_the_order_asked_not_in_the_order_of_ending() -> None:
    second_is_done = anyio.Event()

    async def work(agent: RunnableAgent, task: str) -> str:
        if task == "task 0":
            await second_is_done.wait()
        second_is_done.set()
        return task

    with anyio.fail_after(DEADLINE):
        async with project(work) as grove:
            answer = await (await coordinator(grove)).call("spawn_agents", tasks_for("researcher", "writer"))
    assert answer == {"results": [{"agent": "researcher", "output": "task 0"}, {"agent": "writer", "output": "task 1"}]}


async def test_one_that_fails_stops_no_other_and_tells_nothing_of_the_inside() -> None:
    async def work(agent: RunnableAgent, task: str) -> str:
        if task == "task 1":
            raise RunFailed("The model did not answer.", reason="timeout", retryable=True)
        if task == "task 2":
            raise RuntimeError("/srv/app/runner.py: password=hunter2")
        return task

    names = ("researcher", "researcher", "writer", "researchr", "writer")
    async with project(work) as grove:
        answer = await (await coordinator(grove)).call("spawn_agents", tasks_for(*names))
    fine, failed, crashed, unknown, also_fine = answer["results"]
    assert fine == {"agent": "researcher", "output": "task 0"}
    assert failed == {
        "agent": "researcher",
        "error": {"code": "internal", "message": "The model did not answer.", "reason": "timeout"},
    }
    assert crashed["error"]["reason"] == "runner_failed"
    assert "hunter2" not in str(crashed)
    assert unknown["error"]["code"] == "not_found"
    assert "Did you mean 'researcher'?" in unknown["error"]["message"]
    assert also_fine == {"agent": "writer", "output": "task 4"}


async def test_a_sub_agent_works_one_level_deeper_with_no_more_than_its_parent_may_use_or_hand_on() -> None:
    seen: dict[str, Any] = {}

    async def work(agent: RunnableAgent, task: str) -> str:
        assert isinstance(agent, Agent)
        seen.update(depth=agent.depth, tools={spec.name for spec in agent.tools}, receipt=agent.receipt)
        return "done"

    async with project(work) as grove:
        await (await coordinator(grove)).call("spawn_agents", tasks_for("researcher"))
    assert seen["depth"] == 1
    assert seen["tools"] == {"get_node", "search"}
    assert seen["receipt"]["remove_node"].verdict == "restricted"
    assert "'coordinator' can neither use it nor hand it on" in seen["receipt"]["remove_node"].rule


async def test_only_a_few_work_at_the_same_time() -> None:
    working = 0
    most = 0
    full, go_on = anyio.Event(), anyio.Event()

    async def work(agent: RunnableAgent, task: str) -> str:
        nonlocal working, most
        working += 1
        most = max(most, working)
        if working == AT_ONCE:
            full.set()
        await go_on.wait()
        working -= 1
        return task

    with anyio.fail_after(DEADLINE):
        async with project(work) as grove, anyio.create_task_group() as tasks:
            agent = await coordinator(grove)
            tasks.start_soon(agent.call, "spawn_agents", tasks_for(*["researcher"] * PER_CALL))
            await full.wait()
            await anyio.wait_all_tasks_blocked()
            assert working == AT_ONCE
            go_on.set()
    assert most == AT_ONCE


async def test_cancelling_the_parent_cancels_all_that_it_spawned() -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def work(agent: RunnableAgent, task: str) -> str:
        begun.append(task)
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(task)
        raise AssertionError

    with anyio.fail_after(DEADLINE):
        async with project(work) as grove:
            agent = await coordinator(grove)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.call, "spawn_agents", tasks_for("researcher", "writer"))
                await anyio.wait_all_tasks_blocked()
                assert len(begun) == 2
                tasks.cancel_scope.cancel()
            assert sorted(ended) == sorted(begun)
            assert [record["outcome"] for record in grove.audit] == ["cancelled"]


async def test_whoever_waits_hears_how_many_are_done() -> None:
    async with project() as grove:
        agent = await coordinator(grove)
        requests = [{"tool": "spawn_agents", "arguments": tasks_for("researcher", "nobody", "writer")}]
        events = [event async for event in agent.run(requests)]
    told = [(event["progress"], event["total"], event["message"]) for event in events if "progress" in event]
    assert told == [(1, 3, "1 of 3 done"), (2, 3, "2 of 3 done"), (3, 3, "3 of 3 done")]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"agents": []},
        {"agents": [{"agent": "researcher"}]},
        {"agents": [{"agent": "researcher", "input": ""}]},
        {"agents": [{"agent": "researcher", "input": "x", "depth": 0}]},
        tasks_for(*["researcher"] * (PER_CALL + 1)),
    ],
)
async def test_a_request_that_does_not_fit_starts_nobody(arguments: dict[str, Any]) -> None:
    started: list[str] = []

    async def work(agent: RunnableAgent, task: str) -> str:
        started.append(task)
        return task

    async with project(work) as grove:
        answer = await (await coordinator(grove)).call("spawn_agents", arguments)
    assert answer["error"]["code"] == "invalid_argument"
    assert started == []


async def test_a_run_and_all_that_it_spawns_share_one_budget() -> None:
    started: list[str] = []
    refusals: list[dict[str, Any]] = []

    async def work(agent: RunnableAgent, task: str) -> str:
        started.append(agent.name)
        answer = await agent.call("spawn_agents", tasks_for(*["writer"] * PER_CALL))
        if "error" in answer:
            refusals.append(answer["error"])
        return "done"

    with anyio.fail_after(DEADLINE):
        async with project(work) as grove:
            agent = await coordinator(grove)
            await agent.call("spawn_agents", tasks_for("writer"))
            assert len(started) <= PER_RUN
            assert len(started) == 1 + PER_CALL * 3
            spent = [refusal for refusal in refusals if refusal.get("reason") == "spawn_budget"]
            assert spent
            assert all(refusal["code"] == "forbidden" for refusal in spent)
            assert "Ask for at most 15" in spent[0]["message"]
            started.clear()
            await agent.call("spawn_agents", tasks_for("writer"))
            assert len(started) == 1 + PER_CALL * 3


async def test_without_a_runner_the_answer_says_how_to_configure_one() -> None:
    async with project(None) as grove:
        agent = await coordinator(grove)
        error = (await agent.call("spawn_agents", tasks_for("researcher")))["error"]
        assert (error["code"], error["reason"]) == ("internal", "no_runner")
        assert "runner: {kind: openai, url: …, model: …}" in error["message"]
        assert "Grove(config, runner=…)" in error["message"]


async def test_the_agents_that_can_be_spawned_are_listed_with_what_they_would_have() -> None:
    async with project() as grove:
        answer = await (await coordinator(grove)).call("list_available_agents")
    agents = {one.pop("name"): one for one in answer["agents"]}
    assert agents.keys() == {"researcher", "writer"}
    assert agents["researcher"] == {"description": "Looks things up.", "tools": 2}


async def test_a_reader_may_delegate() -> None:
    async with project() as grove:
        agent = await coordinator(grove)
        specs = {spec.name: spec for spec in agent.tools}
        assert {"spawn_agents", "list_available_agents"} <= specs.keys()
        assert not specs["spawn_agents"].annotations.readonly
        assert specs["list_available_agents"].annotations.readonly
        assert (await agent.call("spawn_agents", tasks_for("writer")))["results"][0]["output"] == "writer: task 0"
