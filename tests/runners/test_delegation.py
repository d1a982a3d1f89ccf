"""Delegation from end to end: models that spawn, at every depth, through the runners that we ship."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from runners.brain import Ask, Say, Turn
from runners.conftest import Driven
from runners.endpoint import serving, thinking
from toolgrove import Config, Grove
from toolgrove.runners import Runner

pytestmark = pytest.mark.anyio
DEADLINE = 60
COORDINATION = {"spawn_agents", "list_available_agents"}


class Mind:
    """Every model of a project: spawns the next agent that its task names, and repeats what came back."""

    def __init__(self) -> None:
        self.tools: dict[str, set[str]] = {}

    def __call__(self, turn: Turn) -> Say | Ask:
        here, _, onward = turn.task.partition(" > ")
        self.tools[here] = set(turn.tools)
        if onward and not turn.results:
            agent = onward.partition(" > ")[0]
            return Ask(("spawn_agents", {"agents": [{"agent": agent.rstrip("2"), "input": onward}]}))
        return Say(f"{here}({_told(turn.results[0])})" if turn.results else here)


def _told(result: dict[str, Any]) -> str:
    if "error" in result:
        return str(result["error"]["code"])
    (one,) = result["results"]
    return str(one["output"] if "output" in one else one["error"]["code"])


def project(runner: Runner, **agents: Any) -> Grove:
    coordinator = {"tools": ["*"], "role": "editor", "mayDelegate": ["*"]}
    return Grove(Config.model_validate({"agents": {"coordinator": coordinator, **agents}}), runner=runner)


async def delegated(grove: Grove, path: str) -> str:
    """The answer at the end of a path of agents, each spawned by the one before."""
    coordinator = await grove.agent("coordinator")
    first = path.partition(" > ")[0]
    answer = await coordinator.call("spawn_agents", {"agents": [{"agent": first, "input": path}]})
    return _told(answer)


@pytest.mark.requirement("POOL-002-07")
async def test_a_spawned_researcher_cannot_spawn_though_it_has_every_other_tool(driven: Driven) -> None:
    mind = Mind()
    with anyio.fail_after(DEADLINE):
        async with driven(mind) as runner, project(runner, researcher={"tools": ["*"]}) as grove:
            assert await delegated(grove, "researcher > researcher") == "researcher(not_found)"
            inside, outside = grove.audit
    assert "get_node" in mind.tools["researcher"]
    assert not COORDINATION & mind.tools["researcher"]
    assert (inside["agent"], inside["operation"], inside["outcome"]) == ("researcher", "spawn_agents", "failure")
    assert (outside["agent"], outside["operation"], outside["outcome"]) == ("coordinator", "spawn_agents", "success")


@pytest.mark.requirement("POOL-002-08")
async def test_a_sub_agent_that_lists_spawn_agents_by_name_spawns_one_level_deeper(driven: Driven) -> None:
    mind = Mind()
    lead = {"tools": ["spawn_agents", "get_*"]}
    with anyio.fail_after(DEADLINE):
        async with driven(mind) as runner, project(runner, lead=lead, researcher={"tools": ["get_node"]}) as grove:
            assert await delegated(grove, "lead > researcher") == "lead(researcher)"
    assert "spawn_agents" in mind.tools["lead"]
    assert mind.tools["researcher"] == {"get_node"}


@pytest.mark.requirement("POOL-002-09")
async def test_at_the_maximum_depth_spawning_ends_with_a_warning(
    driven: Driven, caplog: pytest.LogCaptureFixture
) -> None:
    mind = Mind()
    lead = {"tools": ["spawn_agents", "get_node"], "maySpawn": ["lead"]}
    with anyio.fail_after(DEADLINE), caplog.at_level(logging.WARNING, "toolgrove.pool"):
        async with driven(mind) as runner, project(runner, lead=lead) as grove:
            assert await delegated(grove, "lead > lead2 > lead") == "lead(lead2(not_found))"
    assert "spawn_agents" in mind.tools["lead"]
    assert mind.tools["lead2"] == {"get_node"}
    assert any("depth 2 of maxDepth 2: spawn_agents is removed" in record.getMessage() for record in caplog.records)


async def test_a_deeper_maximum_is_the_agents_own_choice(driven: Driven) -> None:
    mind = Mind()
    lead = {"tools": ["spawn_agents"], "maxDepth": 3, "maySpawn": ["lead", "researcher"]}
    with anyio.fail_after(DEADLINE):
        async with driven(mind) as runner, project(runner, lead=lead, researcher={"tools": ["get_node"]}) as grove:
            assert await delegated(grove, "lead > lead2 > researcher") == "lead(lead2(researcher))"


async def test_a_run_through_a_runner_shares_the_budget_with_all_that_it_spawns(driven: Driven) -> None:
    asked: list[Turn] = []

    def mind(turn: Turn) -> Say | Ask:
        if not turn.results:
            asked.append(turn)
            return Ask(("spawn_agents", {"agents": [{"agent": "lead", "input": "again"}] * 16}))
        return Say(str(turn.results[0].get("error", {}).get("reason")))

    lead = {"tools": ["spawn_agents"], "maxDepth": 9, "maySpawn": ["lead"]}
    with anyio.fail_after(DEADLINE):
        async with driven(mind) as runner, project(runner, lead=lead) as grove:
            assert await delegated(grove, "lead") == "None"
    assert len(asked) == 1 + 3 * 16


async def test_the_file_alone_is_enough_to_delegate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-canary")
    mind = Mind()
    async with serving(thinking(mind)) as endpoint:
        form = {
            "runner": {"kind": "openai", "url": endpoint.url, "model": "m", "apiKey": "${env:MODEL_KEY}"},
            "secrets": {"MODEL_KEY": {"tools": ["runner"]}},
            "agents": {"coordinator": {"tools": ["*"]}, "researcher": {"tools": ["get_node"]}},
        }
        with anyio.fail_after(DEADLINE):
            async with Grove(Config.model_validate(form)) as grove:
                assert await delegated(grove, "researcher") == "researcher"
        assert endpoint.requests[0].headers["authorization"] == "Bearer sk-canary"
        assert endpoint.requests[0].body["model"] == "m"


async def test_a_key_that_is_not_set_is_the_entrys_error_and_names_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    form = {
        "runner": {"kind": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "apiKey": "${env:MODEL_KEY}"},
        "secrets": {"MODEL_KEY": {"tools": ["runner"]}},
        "agents": {"coordinator": {"tools": ["*"]}, "researcher": {"tools": ["get_node"]}},
    }
    async with Grove(Config.model_validate(form)) as grove:
        agent = await grove.agent("coordinator")
        request = {"agents": [{"agent": "researcher", "input": "x"}]}
        (one,) = (await agent.call("spawn_agents", request))["results"]
    assert one["error"]["reason"] == "secret_unset"
    assert "runner.apiKey" in one["error"]["message"]
