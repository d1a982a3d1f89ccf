"""What an agent's list costs a model, told wherever somebody looks; an estimate that is named as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pool.test_toolsets import modules
from toolgrove import Agent, Config, Grove
from toolgrove.cli.checks.agents import check
from toolgrove.web import schemas

pytestmark = pytest.mark.anyio


async def resolved(agent: dict[str, Any], **project: Any) -> tuple[Grove, Agent]:
    config = Config.model_validate({"agents": {"a": {"role": "editor", **agent}}, **project})
    async with Grove(config, extensions=modules()) as grove:
        return grove, await grove.agent("a")


async def test_the_receipt_tells_what_each_tool_each_source_and_the_whole_list_cost() -> None:
    _, agent = await resolved({"tools": ["get_node", "time_*"]})
    told = schemas.Receipt.of(agent.receipt).to_json()["tokensEstimate"]
    listing = json.dumps([spec.listing for spec in agent.tools], separators=(",", ":"), ensure_ascii=False)
    assert abs(told["total"] - len(listing) / 4) <= len(agent.tools)
    assert set(told["tools"]) == {"get_node", "time_now", "time_zone", "time_set"}
    assert told["sources"]["extensions"] + told["sources"]["workspace"] == told["total"] == sum(told["tools"].values())
    assert told["budget"] == 16_000
    assert schemas.Receipt.of(agent.own_receipt).to_json()["tokensEstimate"] == told


async def test_in_search_only_what_is_listed_costs_something() -> None:
    _, agent = await resolved({"tools": ["@all"], "expose": "search", "always": ["get_node"]})
    assert set(agent.receipt.cost.tools) == {"get_node", "find_tools", "call_tool"}
    assert agent.receipt.cost.total < 600


async def test_a_list_beyond_the_budget_is_warned_of_loudly() -> None:
    _, agent = await resolved({"tools": ["@core"], "toolBudget": 1000})
    [warning] = agent.receipt.warnings
    assert "tokens (an estimate), more than its toolBudget of 1,000: write expose: auto" in warning
    _, searching = await resolved({"tools": ["@core"], "toolBudget": 100, "expose": "search", "always": ["@core"]})
    assert any("name fewer in always" in one for one in searching.receipt.warnings)
    _, fitting = await resolved({"tools": ["time_*"]})
    assert fitting.receipt.warnings == ()


async def test_an_editor_with_every_built_in_tool_is_within_the_default_budget() -> None:
    """The README's own example: `agents: {editor: {role: editor, tools: ["*"]}}`."""
    config = Config.model_validate({"agents": {"editor": {"role": "editor", "tools": ["*"]}}})
    async with Grove(config) as grove:
        agent = await grove.agent("editor")
    assert agent.receipt.warnings == ()
    assert {"add_child", "import_merge", "apply_changes"} <= {spec.name for spec in agent.tools}


async def test_a_list_longer_than_well_known_clients_take_names_them() -> None:
    registry = modules()
    for number in range(130):
        registry.register(f"tool.number_{number}", type(registry.get("time_now"))(reads=True))
    config = Config.model_validate(
        {"agents": {"a": {"tools": ["tool-*"]}, "b": {"tools": ["tool-*"], "expose": "search"}}}
    )
    async with Grove(config, extensions=registry) as grove:
        warnings = (await grove.agent("a")).receipt.warnings
        assert any("more than Windsurf (100) and VS Code and OpenAI's API (128) take" in one for one in warnings)
        assert (await grove.agent("b")).receipt.warnings == ()


async def test_the_doctor_tells_the_cost_and_the_warning() -> None:
    grove, agent = await resolved({"tools": ["@core"], "toolBudget": 1000})
    said = {finding.level: finding.message for finding in check(grove.config, agent, grove.pool.latest)}
    assert "its list costs about " in said["ok"]
    assert "toolBudget" in said["warning"]
