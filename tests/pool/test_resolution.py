"""What an agent has, and why: the scenarios of the pool, through the public API."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from apcore import ModuleAnnotations, Registry
from pydantic import BaseModel

from toolgrove import Agent, Config, Grove
from toolgrove.web import schemas

pytestmark = pytest.mark.anyio
COORDINATION = {"spawn_agents", "list_available_agents"}


class Nothing(BaseModel):
    """No arguments."""


class Answer(BaseModel):
    """What every module here returns."""

    name: str


class Named:
    """A module that answers with its own name, and says that this is all it does."""

    input_schema = Nothing
    output_schema = Answer
    description = "Tells its name."
    annotations: ModuleAnnotations | None = ModuleAnnotations(readonly=True)

    def __init__(self, name: str) -> None:
        self._name = name

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"name": self._name}


def registry(*names: str) -> Registry:
    modules = Registry()
    for name in names:
        modules.register(name, Named(name))
    return modules


GRAPH = ("search_hybrid", "entities_get", "entities_create", "entities_update", "entities_delete", "graph_traverse")


async def resolved(agent: dict[str, Any], *, depth: int = 0, modules: Registry | None = None) -> Agent:
    config = Config.model_validate({"agents": {"a": agent}})
    async with Grove(config, extensions=modules or registry(*GRAPH)) as grove:
        return await grove.agent("a", depth=depth)


def names(agent: Agent) -> set[str]:
    return {spec.name for spec in agent.tools}


@pytest.mark.requirement("POOL-002-01", "CALL-003-02")
async def test_the_pool_has_the_built_in_tools_and_those_of_every_source() -> None:
    agent = await resolved({"role": "editor", "tools": ["*"]})
    builtin = {spec.name for spec in agent.tools if spec.source in ("workspace", "coordination")}
    assert len(builtin) >= 30
    assert {"get_node", "add_child"} | COORDINATION <= builtin
    assert set(GRAPH) <= names(agent)


@pytest.mark.requirement("POOL-002-03", "CALL-003-01")
async def test_exact_names_give_exactly_those_tools() -> None:
    agent = await resolved({"tools": ["search_hybrid", "entities_get", "graph_traverse"]})
    assert names(agent) == {"search_hybrid", "entities_get", "graph_traverse"}
    assert (await agent.call("search_hybrid")) == {"name": "search_hybrid"}
    refused = await agent.call("entities_create")
    assert refused["error"]["code"] == "not_found"


@pytest.mark.requirement("POOL-002-04")
async def test_a_glob_gives_every_tool_that_matches() -> None:
    agent = await resolved({"tools": ["entities_*"]})
    assert names(agent) == {"entities_get", "entities_create", "entities_update", "entities_delete"}


async def test_globs_mind_the_case_and_know_question_marks_and_sets() -> None:
    assert names(await resolved({"tools": ["Entities_*"]})) == set()
    assert names(await resolved({"tools": ["entities_?et"]})) == {"entities_get"}
    assert names(await resolved({"tools": ["*_[gd]*et*"]})) == {"entities_get", "entities_delete"}


@pytest.mark.requirement("POOL-002-05")
async def test_a_star_gives_everything_in_the_pool() -> None:
    agent = await resolved({"role": "editor", "tools": ["*"]})
    assert names(agent) == set(agent.receipt)
    assert {verdict.verdict for verdict in agent.receipt.values()} == {"granted"}


@pytest.mark.requirement("POOL-002-06")
async def test_a_name_that_the_pool_has_not_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolgrove"):
        agent = await resolved({"tools": ["search_hybird", "entities_get"]})
    assert names(agent) == {"entities_get"}
    [warning] = agent.receipt.warnings
    assert "'search_hybird'" in warning
    assert "Did you mean 'search_hybrid'?" in warning
    assert warning in caplog.messages


async def test_deny_beats_everything_and_the_receipt_names_the_rule() -> None:
    agent = await resolved({"tools": ["*", "entities_get"], "deny": ["entities_*"]})
    assert not names(agent) & {name for name in GRAPH if name.startswith("entities_")}
    assert agent.receipt["entities_get"].verdict == "denied"
    assert agent.receipt["entities_get"].rule == "deny: entities_*"
    assert agent.receipt["search_hybrid"][:3] == ("granted", "tools: *", "extensions")


@pytest.mark.parametrize("tools", [{}, {"tools": []}])
async def test_an_agent_without_tools_hears_about_it_loudly(
    tools: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolgrove"):
        agent = await resolved(tools)
    assert agent.tools == ()
    assert any("no tools at all" in message and "lists none" in message for message in caplog.messages)


async def test_what_the_role_forbids_is_not_listed_and_calling_it_is_forbidden() -> None:
    agent = await resolved({"role": "reader", "tools": ["add_child", "get_node"]})
    assert names(agent) == {"get_node"}
    assert agent.receipt["add_child"].verdict == "restricted"
    assert (await agent.call("add_child"))["error"]["code"] == "forbidden"
    read_only = await resolved({"role": "editor", "readOnly": True, "tools": ["add_child", "get_node"]})
    assert read_only.receipt["add_child"].rule.startswith("read-only mode")


@pytest.mark.requirement("POOL-002-07")
@pytest.mark.parametrize("tools", [["*"], ["spawn_*", "list_*"], ["list_available_agents"]])
async def test_a_sub_agent_has_no_coordination_tools_by_default(tools: list[str]) -> None:
    assert names(await resolved({"tools": tools})) & COORDINATION
    sub_agent = await resolved({"tools": tools}, depth=1)
    assert not names(sub_agent) & COORDINATION
    assert sub_agent.receipt["spawn_agents"].verdict in ("restricted", "denied")
    assert (await sub_agent.call("spawn_agents", {"agents": []}))["error"]["code"] == "not_found"


@pytest.mark.requirement("POOL-002-08")
async def test_a_sub_agent_that_lists_spawn_agents_by_name_keeps_it_below_the_maximum_depth() -> None:
    definition = {"tools": ["spawn_agents", "list_available_agents"]}
    assert names(await resolved(definition, depth=1)) == COORDINATION
    deeper = await resolved({**definition, "maxDepth": 4}, depth=3)
    assert names(deeper) == COORDINATION


@pytest.mark.requirement("POOL-002-09")
@pytest.mark.parametrize("depth", [2, 3])
async def test_at_the_maximum_depth_spawn_agents_is_gone_with_a_warning(
    depth: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolgrove"):
        agent = await resolved({"tools": ["spawn_agents", "get_node"]}, depth=depth)
    assert names(agent) == {"get_node"}
    assert any(f"depth {depth} of maxDepth 2" in message for message in caplog.messages)


@pytest.mark.requirement("POOL-002-11")
async def test_a_tool_added_meanwhile_shows_at_the_next_resolution_only() -> None:
    modules = registry("entities_get")
    async with Grove(Config.model_validate({"agents": {"a": {"tools": ["entities_*"]}}}), extensions=modules) as grove:
        before = await grove.agent("a")
        changed = grove.pool.latest.revision
        modules.register("entities_new", Named("entities_new"))
        assert names(before) == {"entities_get"}
        assert (await before.call("entities_new"))["error"]["code"] == "not_found"
        after = await _newer(grove, changed)
        assert names(after) == {"entities_get", "entities_new"}
        assert (await after.call("entities_new")) == {"name": "entities_new"}
        assert names(before) == {"entities_get"}
        assert after.receipt.hash != before.receipt.hash


async def _newer(grove: Grove, revision: int) -> Agent:
    """An agent of the pool after its next change."""
    import anyio

    with anyio.fail_after(5):
        while grove.pool.latest.revision == revision:
            await anyio.lowlevel.checkpoint()
    return await grove.agent("a")


async def test_a_sub_agent_never_gets_what_its_parent_can_neither_use_nor_hand_on() -> None:
    agents = {
        "parent": {"tools": ["search_hybrid", "spawn_agents"], "mayDelegate": ["entities_g*"]},
        "child": {"tools": ["*"], "mayDelegate": ["*"]},
    }
    async with Grove(Config.model_validate({"agents": agents}), extensions=registry(*GRAPH)) as grove:
        parent = await grove.agent("parent")
        child = await grove.agent("child", within=parent.bounds)
        assert names(child) == {"search_hybrid", "entities_get"}
        assert child.receipt["graph_traverse"].verdict == "restricted"
        assert "'parent'" in child.receipt["graph_traverse"].rule
        assert child.receipt["graph_traverse"].ancestor == "parent"
        grandchild = await grove.agent("child", within=child.bounds)
        assert names(grandchild) == names(child)


async def test_the_receipt_is_json_and_its_hash_tells_one_resolution_from_another() -> None:
    one = await resolved({"tools": ["entities_*"]})
    same = await resolved({"tools": ["entities_*"]})
    other = await resolved({"tools": ["entities_*"], "deny": ["entities_get"]})
    assert one.receipt.hash == same.receipt.hash != other.receipt.hash
    form = schemas.Receipt.of(one.receipt).to_json()
    granted = {
        "verdict": "granted",
        "rule": "tools: entities_*",
        "source": "extensions",
        "ancestor": None,
        "approval": None,
    }
    assert form["tools"]["entities_get"] == granted
    assert form["sources"]["extensions"] == {
        "name": "extensions",
        "kind": "extension",
        "tools": 6,
        "problem": "",
        "notice": "",
        "takesLogin": False,
    }


async def test_a_module_changes_something_unless_it_is_annotated_as_reading() -> None:
    modules = Registry()
    for name, said in {
        "silent": None,
        "reads": ModuleAnnotations(readonly=True),
        "writes": ModuleAnnotations(idempotent=True),
        "torn": ModuleAnnotations(readonly=True, destructive=True),
    }.items():
        module = Named(name)
        module.annotations = said
        modules.register(name, module)
    agent = await resolved({"role": "reader", "tools": ["*"]}, modules=modules)
    assert names(agent) & {"silent", "reads", "writes", "torn"} == {"reads"}
    assert "annotations = ModuleAnnotations(readonly=True) in module silent" in agent.receipt["silent"].rule
