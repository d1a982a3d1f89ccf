"""Named sets of tools, and a project without a tree, through the public API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from apcore import ModuleAnnotations, Registry
from pydantic import BaseModel

from toolgrove import Agent, Config, Grove
from toolgrove.config import ConfigError

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    """No arguments, and no answer."""


class Module:
    """A module that reads or changes, as it says."""

    input_schema = Nothing
    output_schema = Nothing
    description = "Does nothing."

    def __init__(self, *, reads: bool) -> None:
        self.annotations = ModuleAnnotations(readonly=reads)

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {}


def modules() -> Registry:
    registry = Registry()
    for name in ("time_now", "time_zone"):
        registry.register(name, Module(reads=True))
    registry.register("time_set", Module(reads=False))
    return registry


async def resolved(agent: dict[str, Any], **project: Any) -> Agent:
    async with Grove(Config.model_validate({"agents": {"a": agent}, **project}), extensions=modules()) as grove:
        return await grove.agent("a")


def names(agent: Agent) -> set[str]:
    return {spec.name for spec in agent.tools}


async def test_core_is_a_dozen_tree_tools_and_the_receipt_names_the_set() -> None:
    agent = await resolved({"role": "editor", "tools": ["@core"]})
    assert 10 <= len(names(agent)) <= 14
    assert {"get_subtree", "search", "add_child", "update_payload", "remove_node", "undo"} <= names(agent)
    assert {spec.source for spec in agent.tools} == {"workspace"}
    assert agent.receipt["get_subtree"].rule == "tools: @core"


async def test_read_is_every_tool_that_reads_also_for_an_editor() -> None:
    agent = await resolved({"role": "editor", "tools": ["@read"]})
    assert {"time_now", "time_zone", "get_node", "search"} <= names(agent)
    assert not {"time_set", "add_child", "remove_node"} & names(agent)
    assert agent.receipt["time_now"].rule == "tools: @read"


async def test_all_is_the_star() -> None:
    starred = await resolved({"role": "editor", "tools": ["*"]})
    everything = await resolved({"role": "editor", "tools": ["@all"]})
    assert names(everything) == names(starred)


async def test_a_set_of_the_project_grants_its_patterns_and_the_receipt_names_both() -> None:
    sets = {"triage": ["time_*", "get_node"], "wide": ["@triage", "search"]}
    agent = await resolved({"role": "editor", "tools": ["@triage", "get_path"]}, toolsets=sets)
    assert names(agent) == {"time_now", "time_zone", "time_set", "get_node", "get_path"}
    assert agent.receipt["time_now"].rule == "tools: @triage (time_*)"
    assert agent.receipt["get_path"].rule == "tools: get_path"
    nested = await resolved({"role": "editor", "tools": ["@wide"]}, toolsets=sets)
    assert names(nested) == {"time_now", "time_zone", "time_set", "get_node", "search"}
    assert nested.receipt["time_now"].rule == "tools: @wide (@triage (time_*))"


async def test_sets_work_wherever_an_agent_names_tools() -> None:
    sets = {"clock": ["time_*"]}
    denied = await resolved({"role": "editor", "tools": ["@all"], "deny": ["@clock"]}, toolsets=sets)
    assert not {"time_now", "time_set"} & names(denied)
    assert denied.receipt["time_set"].rule == "deny: @clock (time_*)"
    asking = {"role": "editor", "tools": ["@clock"], "approve": ["@clock"]}
    config = Config.model_validate({"agents": {"a": asking}, "toolsets": sets})
    async with Grove(config, extensions=modules()) as grove:
        asked = await grove.agent("a")
        assert asked.approvals["time_set"] == "approve: @clock (time_*)"
        assert (await asked.call("time_set"))["error"]["reason"] == "approval_required"


async def test_what_a_set_names_and_the_pool_lacks_is_warned_of() -> None:
    agent = await resolved({"tools": ["@triage"]}, toolsets={"triage": ["get_nod", "get_path"]})
    assert any("'get_nod'" in warning and "'get_node'" in warning for warning in agent.receipt.warnings)


async def test_a_changed_set_changes_the_receipt() -> None:
    one = await resolved({"tools": ["@triage"]}, toolsets={"triage": ["get_node"]})
    other = await resolved({"tools": ["@triage"]}, toolsets={"triage": ["get_path"]})
    assert one.receipt.hash != other.receipt.hash


@pytest.mark.parametrize(
    ("project", "said"),
    [
        ({"agents": {"a": {"tools": ["@triag"]}}, "toolsets": {"triage": []}}, "did you mean '@triage'"),
        ({"agents": {"a": {"deny": ["@nobody"]}}}, "there is no toolset '@nobody'"),
        ({"toolsets": {"core": ["x"]}}, "is a built-in set"),
        ({"toolsets": {"a": ["@b"], "b": ["@a"]}}, "holds itself"),
        ({"agents": {"a": {"mcp": {"s": {"mask": ["@read"]}}}}}, "only names and globs"),
        ({"secrets": {"KEY": {"tools": ["@read"]}}}, "only names and globs"),
        ({"record": {"tools": {"@read": "none"}}}, "only names and globs"),
    ],
)
def test_a_set_that_cannot_be_meant_is_refused_with_the_file(
    project: dict[str, Any], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "toolgrove.json"
    file.write_text(json.dumps(project))
    with pytest.raises(ConfigError, match=said):
        Config.load(file)


@pytest.mark.parametrize("workspace", [False, {"tree": False}])
async def test_a_project_without_a_tree_has_no_tree_tools_and_keeps_the_rest(workspace: Any) -> None:
    config = Config.model_validate({"workspace": workspace, "agents": {"a": {"role": "editor", "tools": ["*"]}}})
    async with Grove(config, extensions=modules()) as grove:
        agent = await grove.agent("a")
        assert {spec.source for spec in agent.tools} == {"coordination", "extensions"}
        assert await agent.call("time_set") == {}
        assert (await agent.call("get_node", {"nodeId": "root"}))["error"]["code"] == "not_found"
        assert {record["operation"] for record in grove.audit} == {"time_set", "get_node"}
        app = grove.asgi_app(anonymous=True)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                assert (await client.get("/api/project")).json()["tree"] is False
