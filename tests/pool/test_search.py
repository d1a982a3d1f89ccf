"""An agent that has more tools than a model can read: few are listed, all can be found and called."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from e2e.wire import messages, modern_body, modern_headers
from pool.mcp.test_fidelity import serving
from pool.test_toolsets import modules
from toolgrove import Agent, Config, Grove
from toolgrove.config import AgentConfig
from toolgrove.pool.exposure import Exposure
from toolgrove.pool.offer import Offer
from toolgrove.pool.ranking import Ranking
from toolgrove.pool.resolve import resolve
from toolgrove.pool.snapshot import PoolSnapshot, compose
from toolgrove.tools import DECLARATIONS
from toolgrove.types import Tool

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
FOUND = {"find_tools", "call_tool"}


def project(agent: Json, **more: Any) -> Grove:
    return Grove(Config.model_validate({"agents": {"a": {"role": "editor", **agent}}, **more}), extensions=modules())


def names(agent: Agent) -> set[str]:
    return {spec.name for spec in agent.tools}


def granted(agent: Agent) -> set[str]:
    return {spec.name for spec in agent.granted}


async def found(agent: Agent, query: str, limit: int = 20) -> list[str]:
    return [tool["name"] for tool in (await agent.call("find_tools", {"query": query, "limit": limit}))["tools"]]


async def test_in_search_the_list_is_what_always_names_and_the_two_that_find_and_call() -> None:
    async with project({"tools": ["@all"], "expose": "search", "always": ["get_node", "time_*"]}) as grove:
        agent = await grove.agent("a")
        assert names(agent) == {"get_node", "time_now", "time_zone", "time_set"} | FOUND
        assert {"add_child", "search"} <= granted(agent)
        assert agent.receipt["find_tools"] == ("granted", "expose: search", "discovery", None)
        assert agent.receipt["add_child"].rule == "tools: @all"
        assert [tool["function"]["name"] for tool in agent.openai_tools()] == [spec.name for spec in agent.tools]


async def test_what_is_found_can_be_called_by_either_way() -> None:
    types = {"workspace": {"allowUnknownTypes": True}}
    async with project({"tools": ["@all"], "expose": "search"}, **types) as grove:
        agent = await grove.agent("a")
        answer = await agent.call("find_tools", {"query": "add a child node below a parent"})
        first = answer["tools"][0]
        assert first["name"] == "add_child"
        version = (await agent.call("call_tool", {"name": "get_node", "arguments": {"nodeId": "root"}}))["version"]
        arguments = {"parentNodeId": "root", "payloadType": "t", "versionToken": version}
        assert jsonschema_rs.validator_for(first["inputSchema"]).is_valid(arguments)
        through = await agent.call("call_tool", {"name": "add_child", "arguments": arguments})
        direct = await agent.call("add_child", {**arguments, "versionToken": through["version"]})
        assert through["nodeId"] != direct["nodeId"]
        records = {record["operation"] for record in grove.audit}
        assert records == {"find_tools", "get_node", "add_child"}, "nothing is recorded as call_tool"


async def test_what_an_agent_may_not_have_is_neither_found_nor_called() -> None:
    async with project(
        {"role": "reader", "tools": ["@all"], "deny": ["time_zone", "spawn_*"], "expose": "search"}
    ) as grove:
        agent = await grove.agent("a")
        everything = {name for word in ("time", "node", "child", "tree") for name in await found(agent, word)}
        assert everything <= granted(agent)
        assert not {"time_zone", "time_set", "add_child"} & everything
        refused = await agent.call("call_tool", {"name": "time_zone"})
        assert (refused["error"]["code"], refused["error"]["tool"]) == ("not_found", "time_zone")
        assert (await agent.call("call_tool", {"name": "time_set"}))["error"]["code"] == "forbidden"
        hints = {spec.name: spec.annotations for spec in agent.tools}
        assert hints["call_tool"].readonly is True, "all that a reader can call reads"


async def test_a_call_through_call_tool_has_the_approvals_limits_and_checks_of_the_real_tool() -> None:
    limits = {"approve": ["time_set"], "rateLimit": "4/minute"}
    async with project({"tools": ["time_*", "get_node"], "expose": "search", **limits}) as grove:
        agent = await grove.agent("a")
        asked = (await agent.call("call_tool", {"name": "time_set"}))["error"]
        assert asked["reason"] == "approval_required"
        [waiting] = await grove.approvals.list("pending")
        assert waiting.request.tool == "time_set"
        await grove.approvals.decide(waiting.id, approve=True, by="operator")
        assert await agent.call("call_tool", {"name": "time_set", "arguments": {}}) == {}
        wrong = (await agent.call("call_tool", {"name": "get_node", "arguments": {"nodeID": "x"}}))["error"]
        assert "nodeId" in wrong["message"]
        assert (await agent.call("call_tool", {"name": "time_now"})) == {}
        assert (await agent.call("call_tool", {"name": "time_now"}))["error"]["code"] == "rate_limited"


@pytest.mark.parametrize(
    "arguments", [{}, {"name": 3}, {"name": "call_tool"}, {"name": "time_now", "args": {}}, {"name": "find_tools"}]
)
async def test_a_call_that_means_no_tool_says_what_to_do(arguments: Json) -> None:
    async with project({"tools": ["time_*"], "expose": "search"}) as grove:
        agent = await grove.agent("a")
        refused = (await agent.call("call_tool", arguments))["error"]
        assert refused["code"] == "invalid_argument"
        assert (await agent.call("call_tool", {"name": "tme_now"}))["error"]["message"].endswith("'time_now'?")


async def test_auto_lists_what_fits_the_budget_and_searches_beyond_it() -> None:
    async with project({"tools": ["time_*"], "expose": "auto"}) as grove:
        assert names(await grove.agent("a")) == {"time_now", "time_zone", "time_set"}
    async with project({"tools": ["time_*"], "toolBudget": 20}, expose="auto") as grove:
        agent = await grove.agent("a")
        assert names(agent) == FOUND
        assert agent.receipt["call_tool"].rule.startswith("expose: auto, about ")


async def test_deny_removes_them_and_an_agent_without_tools_never_has_them() -> None:
    async with project({"tools": ["time_*"], "expose": "search", "deny": ["call_*"]}) as grove:
        agent = await grove.agent("a")
        assert names(agent) == {"find_tools"}
        assert (await agent.call("call_tool", {"name": "time_now"}))["error"]["code"] == "not_found"
        assert agent.receipt["call_tool"][:2] == ("denied", "deny: call_*")
    for nothing in ("", "nothing_*"):
        async with project({"tools": [nothing], "expose": "search"}) as grove:
            assert granted(await grove.agent("a")) == set()
    async with project({"tools": ["@all", "find_tools"]}) as grove:
        assert not FOUND & granted(await grove.agent("a")), "only where the agent searches"


async def test_words_that_nothing_has_are_answered_with_the_sources() -> None:
    async with project({"tools": ["time_*"], "expose": "search"}) as grove:
        answer = await (await grove.agent("a")).call("find_tools", {"query": "xylophone"})
        assert (answer["tools"], answer["sources"]) == ([], {"extensions": 3})
        assert "other words" in answer["hint"]


async def test_a_sub_agent_finds_no_more_than_its_parent_lets_it_have() -> None:
    agents = {
        "lead": {"tools": ["time_now", "spawn_agents"]},
        "scout": {"role": "editor", "tools": ["@all"], "expose": "search"},
    }
    async with Grove(Config.model_validate({"agents": agents}), extensions=modules()) as grove:
        lead = await grove.agent("lead")
        scout = await grove.agent("scout", within=lead.bounds)
        assert granted(scout) - FOUND == {"time_now"}
        assert names(scout) == FOUND


async def test_without_output_schemas_the_list_is_shorter_and_results_are_the_same() -> None:
    async with project({"tools": ["get_node"], "listOutputSchemas": False}) as grove:
        agent = await grove.agent("a")
        [spec] = agent.tools
        assert "outputSchema" not in spec.listing
        assert (await agent.call("get_node", {"nodeId": "root"}))["nodeId"] == "root"


async def test_over_mcp_both_eras_list_find_and_call_alike(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "title": "City"}}, "required": ["city"]}
    listed = [
        {"name": "weather", "description": "The forecast for a city.", "inputSchema": schema},
        {"name": "stock", "description": "The price of a share.", "inputSchema": {"type": "object"}},
    ]
    answers = {"weather": {"content": [{"type": "text", "text": "sunny"}], "structuredContent": {"sky": "blue"}}}
    agents = {"a": {"role": "editor", "tools": ["up_*"], "expose": "search"}}
    async with serving(tmp_path, listed, answers, agents=agents) as door:
        assert set(await door.tools()) == FOUND
        asked = await door.call("find_tools", query="will it rain in my city tomorrow, forecast")
        [*_, text] = asked["content"]
        assert json.loads(text["text"]) == asked["structuredContent"]
        [first, *_] = asked["structuredContent"]["tools"]
        assert first["name"] == "up_weather"
        assert first["inputSchema"]["properties"] == {"city": {"type": "string"}}
        through = await door.call("call_tool", name="up_weather", arguments={"city": "Rome"})
        assert through == await door.call("up_weather", city="Rome")
        assert through["structuredContent"] == {"sky": "blue"}
        async with door.older() as older:
            tools = messages(await older.request("tools/list"))[-1]["result"]["tools"]
            assert {tool["name"] for tool in tools} == FOUND
            through = await older.call("call_tool", {"name": "up_weather", "arguments": {"city": "Rome"}})
            assert through["result"]["structuredContent"] == {"sky": "blue"}


async def test_the_instructions_are_made_from_what_an_agent_has() -> None:
    everything = await instructed({"tools": ["@all"], "expose": "search"})
    assert len(everything) / 4 <= 200
    for word in ("find_tools", "call_tool", "versionToken", "outline", "apply_changes"):
        assert word in everything
    reading = await instructed({"role": "reader", "tools": ["get_subtree"]})
    assert "outline" in reading
    assert "versionToken" not in reading
    assert "find_tools" not in reading
    assert await instructed({"tools": ["time_*"]}) == ""


async def instructed(agent: Json) -> str:
    async with project(agent) as grove:
        return (await grove.agent("a")).instructions


async def test_clients_of_both_eras_get_the_instructions(tmp_path: Path) -> None:
    async with serving(tmp_path, [], {}, agents={"a": {"role": "editor", "tools": ["@core"]}}) as door:
        expected = (await door.grove.agent("a")).instructions
        body, headers = modern_body("server/discover"), modern_headers("server/discover")
        found = messages(await door.http.post("/agents/a/mcp", json=body, headers=headers))[-1]["result"]
        assert found["instructions"] == expected
        async with door.older() as older:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            greeting = messages(await older.request("initialize", hello))[-1]["result"]
            assert greeting["instructions"] == expected


def clones(number: int) -> PoolSnapshot:
    """A pool with the tree's tools many times."""
    source: Any = None
    declared = list(DECLARATIONS.values())
    specs = [
        replace(
            declared[at % len(declared)].spec,
            name=f"s{at}_{declared[at % len(declared)].spec.name}",
            source=f"s{at % 60}",
        )
        for at in range(number)
    ]
    tools = [Tool(spec=spec, source=source, mutates=False, kind="mcp", own_name=spec.name) for spec in specs]
    offers = [
        Offer(name=one.own_name, own_name=one.own_name, source=one.spec.source, kind="mcp", tool=one) for one in tools
    ]
    return compose(1, [offers], {})


def test_four_thousand_tools_are_listed_in_few_tokens() -> None:
    agent = AgentConfig(tools=("*",), expose="auto")
    toolset = resolve(clones(4_000), "a", agent, exposure=Exposure.of(Config(), agent))
    assert {spec.name for spec in toolset.listed} == FOUND
    assert toolset.receipt.cost.total <= 1_500


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("relocate a node below another parent", "move_node"),
        ("erase a node", "remove_node"),
        ("who has this tag", "query_by_tag"),
        ("take back my last change", "undo"),
        ("duplicate a branch of the tree", "copy_subtree"),
        ("order children alphabetically", "sort_children"),
        ("compare two snapshots", "snapshot_diff"),
    ],
)
def test_a_tool_is_found_by_other_words_than_its_own(question: str, tool: str) -> None:
    ranking = Ranking([declaration.spec for declaration in DECLARATIONS.values()])
    assert tool in [spec.name for spec in ranking.best(question, 5)]
