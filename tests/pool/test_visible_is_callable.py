"""One law over the public API: what an agent sees is what it can call, on every face, for any pool and agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from apcore import ModuleAnnotations, Registry
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from pydantic import BaseModel

from mcp_text import told
from toolgrove import Agent, Config, Grove
from toolgrove.mcp_face import mcp_endpoint


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

    def __init__(self, name: str, *, readonly: bool) -> None:
        self._name = name
        self.annotations = ModuleAnnotations(readonly=readonly)

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


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(project=projects(), depth=st.integers(0, 3))
def test_visible_is_callable_on_every_face(project: tuple[dict[str, bool], dict[str, Any]], depth: int) -> None:
    asyncio.run(_check(*project, depth))


async def _check(modules: dict[str, bool], config: dict[str, Any], depth: int) -> None:
    registry = Registry()
    for name, readonly in modules.items():
        registry.register(name, Module(name, readonly=readonly))
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
    assert told(await client.call_tool(name, {"no such argument": 1})) == result
    code = result.get("error", {}).get("code")
    if visible:
        assert code in (None, "invalid_argument")
    elif name in agent.receipt and "the tool changes something" in agent.receipt[name].rule:
        assert code == "forbidden"
    else:
        assert code == "not_found"
        assert result["error"]["message"].startswith(f"There is no tool {name!r}.")


SERVER = """
import json, sys
NAMES = ["get_item", "get_node", "find", "set_item", "erase"]
ERASE = {"annotations": {"destructiveHint": True}}
TOOLS = [{"name": n, "inputSchema": {"type": "object"}, **(ERASE if n == "erase" else {})} for n in NAMES]
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "up", "version": "1"}}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            result = {"content": [], "structuredContent": {"ran": message["params"]["name"]}}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
OWN = ["get_item", "get_node", "find", "set_item", "erase"]
EFFECTS = {"reads": ["*"], "changes": ["erase"]}
SERVER_ENTRY = {"command": sys.executable, "args": ["-c", SERVER], "protocol": "legacy", **EFFECTS}
SERVERS = dict.fromkeys(("one", "two"), SERVER_ENTRY)
masks = st.lists(st.sampled_from([*OWN, "get_*", "*item", "*"]), max_size=2)
selections = st.one_of(
    st.none(), st.dictionaries(st.sampled_from(["one", "two"]), st.fixed_dictionaries({"mask": masks}), max_size=2)
)
foreign = st.sampled_from(["*", "one_*", "two_get_*", "*_find", "one_get_node", "two_erase", "get_node"])


@contextmanager
def _open_grove(portal: BlockingPortal) -> Iterator[Grove]:
    config = Config.model_validate({"mcpServers": SERVERS, "startupBudget": 60})
    with portal.wrap_async_context_manager(Grove(config)) as grove:
        portal.call(grove.pool.snapshot)
        yield grove


@pytest.fixture(scope="module")
def grove() -> Iterator[tuple[BlockingPortal, Grove]]:
    with start_blocking_portal() as portal, _open_grove(portal) as grove:
        yield portal, grove


@settings(max_examples=60, deadline=None)
@given(
    tools=st.lists(foreign, max_size=3),
    deny=st.lists(foreign.filter(lambda pattern: pattern != "*"), max_size=1),
    mcp=selections,
    role=st.sampled_from(["reader", "editor"]),
    depth=st.integers(0, 2),
)
def test_visible_is_callable_for_tools_of_servers_too(
    grove: tuple[BlockingPortal, Grove],
    tools: list[str],
    deny: list[str],
    mcp: dict[str, Any] | None,
    role: str,
    depth: int,
) -> None:
    portal, open_grove = grove
    agent = {"role": role, "tools": tools, "deny": deny, **({} if mcp is None else {"mcp": mcp})}
    config = Config.model_validate({"mcpServers": SERVERS, "agents": {"a": agent}, "startupBudget": 60})

    async def check() -> None:
        await open_grove.reload(config)
        resolved = await open_grove.agent("a", depth=depth)
        assert {state.problem for state in resolved.receipt.sources.values()} == {""}
        visible = {spec.name for spec in resolved.tools}
        for server in SERVERS:
            for own in OWN:
                name = f"{server}_{own}"
                result = await resolved.call(name, {})
                if name in visible:
                    assert result["structuredContent"] == {"ran": own}
                else:
                    assert result["error"]["code"] in ("not_found", "forbidden")
                    assert resolved.receipt[name].verdict in ("denied", "masked", "restricted")
                if mcp is not None and server not in mcp:
                    assert name not in visible
        assert visible == {tool["function"]["name"] for tool in resolved.openai_tools()}
        async with Client(mcp_endpoint(resolved, "1").server) as client:
            assert visible == {tool.name for tool in (await client.list_tools()).tools}

    portal.call(check)
