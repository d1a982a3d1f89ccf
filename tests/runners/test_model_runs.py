"""Runs with a model: what whoever follows one is told, and what bounds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from runners.brain import Ask, Say, in_turn
from runners.conftest import Driven
from runners.endpoint import Reply, say, scripted, serving
from toolgrove import Config, Grove
from toolgrove.errors import AgentNotFound, RunFailed, RunnerMissing, TooManyRuns
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
LOOK = ("get_node", {"nodeId": "root"})


@pytest.fixture(autouse=True)
async def _in_time() -> AsyncIterator[None]:
    with anyio.fail_after(DEADLINE):
        yield


def project(**agents: Any) -> Config:
    return Config.model_validate({"workspace": {"payloadTypes": {"Note": {}}}, "agents": agents})


async def all_of(grove: Grove, agent: str, task: str = "Look.") -> list[dict[str, Any]]:
    return [event async for event in grove.run(agent, task)]


async def test_a_run_tells_its_calls_with_results_its_words_and_how_it_ended(driven: Driven) -> None:
    brain, seen = in_turn(Ask(LOOK), Say("There is one node."))
    async with driven(brain) as runner, Grove(project(a={"tools": ["get_node"]}), runner=runner) as grove:
        told = await all_of(grove, "a", "Count the nodes.")
        records = list(grove.audit)
    assert [event["type"] for event in told] == ["tool_started", "tool_succeeded", "text", "run_finished"]
    assert told[1]["result"]["nodeId"] == "root"
    assert told[2]["text"] == "There is one node."
    ended = told[-1]
    assert {name: ended[name] for name in ("outcome", "output", "succeeded", "failed", "toolCalls")} == {
        "outcome": "success",
        "output": "There is one node.",
        "succeeded": 1,
        "failed": 0,
        "toolCalls": 1,
    }
    assert ended["seconds"] >= 0
    assert {event["runId"] for event in told} == {ended["runId"]}
    assert {record["runId"] for record in records} == {ended["runId"]}
    assert seen[0].task == "Count the nodes."


async def test_the_words_and_calls_of_sub_agents_are_told_as_theirs(driven: Driven) -> None:
    spawn = ("spawn_agents", {"agents": [{"agent": "helper", "input": "Look."}]})
    brain, _ = in_turn(Ask(spawn), Ask(LOOK), Say("One."), Say("The helper says one."))
    agents = {"boss": {"tools": ["spawn_agents", "get_node"]}, "helper": {"tools": ["get_node"]}}
    async with driven(brain) as runner, Grove(project(**agents), runner=runner) as grove:
        told = await all_of(grove, "boss")
    texts = [(event["agent"], event["depth"], event["text"]) for event in told if event["type"] == "text"]
    assert texts == [("helper", 1, "One."), ("boss", 0, "The helper says one.")]
    (delegated,) = [event for event in told if event["type"] == "tool_succeeded" and event["depth"] == 1]
    assert "result" not in delegated
    assert told[-1]["delegated"] == {"succeeded": 1, "failed": 0}
    assert (told[-1]["succeeded"], told[-1]["toolCalls"]) == (1, 2)


async def test_what_the_agent_says_about_its_model_reaches_the_endpoint() -> None:
    own = {"prompt": "Be brief.", "model": "small", "temperature": 0.2, "maxOutputTokens": 99, "tools": ["get_node"]}
    runner = {"kind": "openai", "model": "big", "temperature": 1, "maxOutputTokens": 5}
    async with serving(lambda request: say("done")) as endpoint:
        config = {"agents": {"a": own, "b": {}}, "runner": {**runner, "url": endpoint.url}}
        async with Grove(Config.model_validate(config)) as grove:
            await all_of(grove, "a")
            await all_of(grove, "b")
    first, second = (request.body for request in endpoint.requests)
    assert (first["model"], first["temperature"], first["max_tokens"]) == ("small", 0.2, 99)
    assert first["messages"][0]["content"].endswith("\n\nBe brief.")
    assert (second["model"], second["temperature"], second["max_tokens"]) == ("big", 1, 5)


async def test_an_agent_may_have_fewer_turns_than_the_runner(driven: Driven) -> None:
    brain, _ = in_turn(Ask(LOOK), Ask(LOOK), Say("too late"))
    agents = {"a": {"tools": ["get_node"], "maxTurns": 2}}
    async with driven(brain, max_steps=10) as runner, Grove(project(**agents), runner=runner) as grove:
        ended = (await all_of(grove, "a"))[-1]
    assert (ended["outcome"], ended["error"]["reason"], ended["error"]["steps"]) == ("failure", "max_steps", 2)
    assert ended["succeeded"] == 2


async def test_a_run_ends_at_its_deadline_and_lets_go_of_the_endpoint() -> None:
    runner = {"kind": "openai", "model": "m"}
    async with serving(scripted(Reply(held=True))) as endpoint:
        config = {"agents": {"a": {"deadline": 0.05}}, "runner": {**runner, "url": endpoint.url}}
        async with Grove(Config.model_validate(config)) as grove:
            (ended,) = await all_of(grove, "a")
        await endpoint.abandoned.wait()
    assert ended["error"]["reason"] == "deadline"
    assert "0.05 s" in ended["error"]["message"]


async def test_whoever_stops_reading_ends_the_run() -> None:
    async with serving(scripted(Reply(held=True))) as endpoint:
        runner = {"kind": "openai", "url": endpoint.url, "model": "m"}
        async with Grove(Config.model_validate({"agents": {"a": {}}, "runner": runner})) as grove:
            run = await grove.model_run("a")
            events = run.events("Wait.")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anext, events)
                await endpoint.waiting.wait()
                tasks.cancel_scope.cancel()
            await events.aclose()
        await endpoint.abandoned.wait()


async def test_a_call_that_needs_a_person_waits_for_them(driven: Driven) -> None:
    brain, seen = in_turn(Ask(LOOK), Say("Seen."))
    config = project(a={"tools": ["get_node"], "approve": ["get_node"]})
    told = []
    async with driven(brain) as runner, Grove(config, runner=runner) as grove:
        async for event in grove.run("a", "Look."):
            told.append(event)
            if event["type"] == "approval_requested":
                await grove.approvals.decide(event["approvalId"], approve=True, by="ann")
    kinds = [event["type"] for event in told]
    assert kinds == ["tool_started", "approval_requested", "approval_decided", "tool_succeeded", "text", "run_finished"]
    assert (told[2]["by"], told[2]["approved"]) == ("ann", True)
    assert seen[1].results[0]["nodeId"] == "root"


async def test_a_person_who_says_no_is_an_answer_for_the_model(driven: Driven) -> None:
    brain, seen = in_turn(Ask(LOOK), Say("They said no."))
    config = project(a={"tools": ["get_node"], "approve": ["get_node"]})
    async with driven(brain) as runner, Grove(config, runner=runner) as grove:
        async for event in grove.run("a", "Look."):
            if event["type"] == "approval_requested":
                await grove.approvals.decide(event["approvalId"], approve=False, by="ann")
    assert event["outcome"] == "success"
    assert (event["failed"], event["toolCalls"]) == (1, 1)
    assert seen[1].results[0]["error"]["reason"] == "approval_rejected"


async def test_all_that_a_run_spawns_shares_one_budget(driven: Driven) -> None:
    sixteen = ("spawn_agents", {"agents": [{"agent": "nobody", "input": "x"}] * 16})
    brain, seen = in_turn(*[Ask(sixteen)] * 5, Say("done"))
    async with driven(brain) as runner, Grove(project(a={"tools": ["spawn_agents"]}), runner=runner) as grove:
        ended = (await all_of(grove, "a"))[-1]
    assert seen[-1].results[-1]["error"]["reason"] == "spawn_budget"
    assert (ended["succeeded"], ended["failed"]) == (4, 1)


async def test_what_stands_against_a_run_is_said_before_it_begins() -> None:
    async with Grove(project(a={})) as grove:
        with pytest.raises(RunnerMissing, match="has no runner"):
            await all_of(grove, "a")
    runner = Failing(RunFailed("never", reason="x"))
    async with Grove(project(a={}), runner=runner) as grove:
        with pytest.raises(AgentNotFound):
            await all_of(grove, "nobody")


async def test_there_is_an_end_to_the_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgrove.grove.MAX_RUNS", 1)
    async with serving(scripted(Reply(held=True))) as endpoint:
        runner = {"kind": "openai", "url": endpoint.url, "model": "m"}
        async with Grove(Config.model_validate({"agents": {"a": {}}, "runner": runner})) as grove:
            events = (await grove.model_run("a")).events("Wait.")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anext, events)
                await endpoint.waiting.wait()
                with pytest.raises(TooManyRuns):
                    await grove.model_run("a")
                tasks.cancel_scope.cancel()
            await events.aclose()
            await grove.model_run("a")


async def test_a_runner_of_somebody_else_that_breaks_is_told_without_its_insides() -> None:
    async with Grove(project(a={}), runner=Failing(RuntimeError("hunter2"))) as grove:
        (ended,) = await all_of(grove, "a")
    assert ended["error"]["reason"] == "runner_failed"
    assert "hunter2" not in str(ended)


class Failing:
    """A runner that always fails in one way."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    async def run(self, agent: Any, task: str) -> dict[str, Any]:
        raise self._problem
