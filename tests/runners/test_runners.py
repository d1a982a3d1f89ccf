"""What holds for every runner: the model sees the agent's tools, calls only those, and ends in an answer."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runners.brain import Ask, Say, Turn, in_turn
from runners.conftest import Driven
from toolgrove import Agent, Config, Grove
from toolgrove.errors import RunFailed

pytestmark = pytest.mark.anyio
RESEARCHER = {"tools": ["get_node", "search"], "description": "Looks {things} up in the tree."}


async def researcher(grove: Grove) -> Agent:
    return await grove.agent("researcher", depth=1)


def project(**agent: Any) -> Grove:
    return Grove(Config.model_validate({"agents": {"researcher": {**RESEARCHER, **agent}}}))


@pytest.mark.requirement("POOL-002-03")
async def test_the_model_is_given_exactly_the_tools_that_the_definition_names(driven: Driven) -> None:
    brain, seen = in_turn(Say("done"))
    async with project() as grove, driven(brain) as runner:
        assert await runner.run(await researcher(grove), "Look around.") == {"output": "done", "steps": 1}
    assert set(seen[0].tools) == {"get_node", "search"}
    assert seen[0].task == "Look around."
    assert "'researcher'" in seen[0].system
    assert "Looks {things} up in the tree." in seen[0].system


async def test_results_go_back_to_the_model_in_the_order_of_its_calls(driven: Driven) -> None:
    brain, seen = in_turn(
        Ask(("get_node", {"nodeId": "root"}), ("get_node", {"nodeId": "nowhere"}), ("get_node", {})), Say("seen")
    )
    async with project() as grove, driven(brain) as runner:
        assert await runner.run(await researcher(grove), "Look.") == {"output": "seen", "steps": 2}
        first, second, third = seen[1].results
        assert first["nodeId"] == "root"
        assert second["error"]["code"] == "not_found"
        assert third["error"]["code"] == "invalid_argument"
        assert [record["outcome"] for record in grove.audit] == ["success", "failure", "failure"]


@pytest.mark.requirement("POOL-002-10")
@pytest.mark.parametrize("name", ["remove_node", "spawn_agents", "no_such_tool", "transfer_to_agent"])
async def test_a_call_to_a_tool_that_was_not_resolved_comes_back_to_the_model_as_not_found(
    driven: Driven, name: str
) -> None:
    brain, seen = in_turn(Ask((name, {"nodeId": "root"})), Say("I cannot."))
    async with project(role="editor") as grove, driven(brain) as runner:
        assert await runner.run(await researcher(grove), "Tidy up.") == {"output": "I cannot.", "steps": 2}
        assert name not in seen[0].tools
        (refusal,) = seen[1].results
        assert refusal["error"]["code"] == "not_found"
        assert f"There is no tool {name!r}" in refusal["error"]["message"]
        (record,) = grove.audit
        assert (record["operation"], record["outcome"]) == (name, "failure")


async def test_a_tool_that_only_the_role_keeps_away_comes_back_as_forbidden(driven: Driven) -> None:
    brain, seen = in_turn(Ask(("remove_node", {"nodeId": "root"})), Say("I cannot."))
    async with project(tools=["get_node", "remove_node"]) as grove, driven(brain) as runner:
        await runner.run(await researcher(grove), "Tidy up.")
    assert seen[0].tools == ("get_node",)
    assert seen[1].results[0]["error"]["code"] == "forbidden"


async def test_an_agent_without_tools_can_still_answer(driven: Driven) -> None:
    brain, seen = in_turn(Say("from memory"))
    async with project(tools=[]) as grove, driven(brain) as runner:
        assert (await runner.run(await researcher(grove), "Say something."))["output"] == "from memory"
    assert seen[0].tools == ()


async def test_a_run_without_an_end_is_stopped_after_the_last_step(driven: Driven) -> None:
    brain, seen = in_turn(*[Ask(("get_node", {"nodeId": "root"}))] * 4)
    async with project() as grove, driven(brain, max_steps=3) as runner:
        agent = await researcher(grove)
        with pytest.raises(RunFailed, match=r"'researcher' was stopped after 3 answers") as failure:
            await runner.run(agent, "Go round in circles.")
    assert failure.value.facts == {"reason": "max_steps", "steps": 3}
    assert len(seen) == 3


async def test_a_model_that_says_nothing_is_a_failure(driven: Driven) -> None:
    brain, _ = in_turn(Say(""))
    async with project() as grove, driven(brain) as runner:
        agent = await researcher(grove)
        with pytest.raises(RunFailed, match="it said nothing") as failure:
            await runner.run(agent, "Speak.")
    assert failure.value.facts["reason"] == "model_answer"


async def test_two_runs_of_one_runner_do_not_see_each_other(driven: Driven) -> None:
    def brain(turn: Turn) -> Say | Ask:
        return Say(turn.task) if turn.results else Ask(("get_node", {"nodeId": turn.task}))

    outputs: dict[str, Any] = {}
    async with project() as grove, driven(brain) as runner:
        agent = await researcher(grove)

        async def run(task: str) -> None:
            outputs[task] = await runner.run(agent, task)

        async with anyio.create_task_group() as tasks:
            for task in ("one", "two", "three"):
                tasks.start_soon(run, task)
    assert outputs == {task: {"output": task, "steps": 2} for task in ("one", "two", "three")}
