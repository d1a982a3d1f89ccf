"""One law over the public API: what an agent sees is what it can call, on every face, for any pool and agent."""

from __future__ import annotations

import asyncio
from typing import Any

from apcore import ModuleAnnotations, Registry
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from pydantic import BaseModel

from toolgrove import Agent, Config, Grove
from toolgrove.faces import mcp_endpoint


class Nothing(BaseModel):
    """No arguments."""


class Ran(BaseModel):
    """The name of the module that ran."""

    ran: str


class Module:
    """Tells that it ran."""

    input_schema = Nothing
    output_schema = Ran
    description = "Tells that it ran."

    def __init__(self, name: str, *, destructive: bool) -> None:
        self._name = name
        self.annotations = ModuleAnnotations(destructive=destructive)

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"ran": self._name}


WORDS = ["get", "set", "find", "node", "item", "x"]
module_ids = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("_".join)
patterns = st.one_of(
    st.just("*"),
    st.sampled_from(["spawn_agents", "list_available_agents", "get_node", "add_child", "get_*", "*_node", "spawn_*"]),
    module_ids,
    module_ids.map(lambda name: name[:3] + "*"),
    module_ids.map(lambda name: "?" + name[1:]),
)
agents = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["reader", "editor"]),
        "tools": st.lists(patterns, max_size=4),
        "deny": st.lists(patterns.filter(lambda p: p != "*"), max_size=2),
        "readOnly": st.booleans(),
        "maxDepth": st.integers(0, 3),
    }
)


@st.composite
def projects(draw: st.DrawFn) -> tuple[dict[str, bool], dict[str, Any]]:
    modules = draw(st.dictionaries(module_ids, st.booleans(), max_size=5))
    http = draw(st.lists(module_ids, max_size=2, unique=True))
    entries = {f"{name}_call": {"description": "x", "url": "http://127.0.0.1:9/"} for name in http}
    return modules, {"httpTools": entries, "agents": {"a": draw(agents)}}


@settings(max_examples=60, deadline=None)
@given(project=projects(), depth=st.integers(0, 3))
def test_visible_is_callable_on_every_face(project: tuple[dict[str, bool], dict[str, Any]], depth: int) -> None:
    asyncio.run(_check(*project, depth))


async def _check(modules: dict[str, bool], config: dict[str, Any], depth: int) -> None:
    registry = Registry()
    for name, destructive in modules.items():
        registry.register(name, Module(name, destructive=destructive))
    async with Grove(Config.model_validate(config), extensions=registry) as grove:
        agent = await grove.agent("a", depth=depth)
        visible = {spec.name for spec in agent.tools}
        assert visible == {name for name, verdict in agent.receipt.items() if verdict.verdict == "granted"}
        assert visible == {tool["function"]["name"] for tool in agent.openai_tools()}
        async with Client(mcp_endpoint(agent, "1").server) as client:
            assert visible == {tool.name for tool in (await client.list_tools()).tools}
            for name in agent.receipt.keys() | {"no_such_tool"}:
                await _same_answer(agent, client, name, name in visible)


async def _same_answer(agent: Agent, client: Client, name: str, visible: bool) -> None:
    """In-process and over MCP alike: a visible tool is reached, any other is refused before it."""
    if visible and agent.receipt[name].source.endswith("_call"):
        return  # reached, but its server is not there
    result = await agent.call(name, {"no such argument": 1})
    over_mcp = (await client.call_tool(name, {"no such argument": 1})).structured_content
    assert over_mcp == result
    code = result.get("error", {}).get("code")
    if visible:
        assert code in (None, "invalid_argument")
    elif name in agent.receipt and agent.receipt[name].rule.endswith("the tool changes something"):
        assert code == "forbidden"
    else:
        assert code == "not_found"
        assert result["error"]["message"].startswith(f"There is no tool {name!r}.")
