"""Clients that others wrote at one agent's endpoint: those of the TypeScript SDK, the Inspector's, FastMCP's."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport

from e2e.node_tools import INSPECTOR, PACKAGES, node, require
from waiting import DEADLINE
from web.gateway import Gateway

TYPESCRIPT = Path(__file__).with_name("typescript_client.mjs")


def names(gateway: Gateway, agent: str) -> list[str]:
    address = f"{gateway.base}/agents/{agent}/openai-tools"
    tools = httpx2.get(address, headers=gateway.headers(agent), timeout=DEADLINE).json()
    return [tool["function"]["name"] for tool in tools]


@pytest.mark.node
@pytest.mark.parametrize("line", ["sdk1", "client2"])
def test_the_typescript_clients_work_as_an_agent(gateway: Gateway, line: str) -> None:
    require(PACKAGES / "sdk", PACKAGES / "client")
    done = node(TYPESCRIPT, line, gateway.agents["editor"], gateway.tokens["editor"], within=DEADLINE)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen.pop("refused").startswith("refused")
    assert seen == {"tools": names(gateway, "editor"), "once": True, "stale": "conflict", "unknown": "not_found"}


def inspect(gateway: Gateway, agent: str, *arguments: str, token: str | None = None) -> tuple[int, Any]:
    bearer = f"Authorization: Bearer {token or gateway.tokens[agent]}"
    where = [gateway.agents[agent], "--transport", "http", "--header", bearer, "--stored-auth-only"]
    done = node(INSPECTOR, "--cli", *where, *arguments, "--format", "json", within=DEADLINE)
    answer = json.loads(done.stdout) if done.stdout.strip().startswith("{") else None
    return done.returncode, answer.get("result", answer) if answer else done.stderr


@pytest.mark.node
@pytest.mark.parametrize("era", [[], ["--protocol-era", "modern"]], ids=["default", "modern"])
def test_the_inspector_works_as_an_agent(gateway: Gateway, era: list[str]) -> None:
    require(INSPECTOR)
    code, listed = inspect(gateway, "researcher", *era, "--method", "tools/list")
    assert code == 0, listed
    assert [tool["name"] for tool in listed["tools"]] == names(gateway, "researcher")
    look = ["--method", "tools/call", "--tool-name", "get_node", "--tool-arg", "nodeId=root"]
    code, seen = inspect(gateway, "researcher", *era, *look)
    assert (code, seen["structuredContent"]["nodeId"]) == (0, "root")
    code, _ = inspect(gateway, "researcher", *era, "--method", "tools/call", "--tool-name", "add_child")
    assert code != 0
    code, _ = inspect(gateway, "researcher", *era, "--method", "tools/list", token="wrong")
    assert code != 0


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_the_fastmcp_client_works_as_an_agent(gateway: Gateway) -> None:
    transport = StreamableHttpTransport(gateway.agents["researcher"], headers=gateway.headers("researcher"))
    async with FastClient(transport) as client:
        assert [tool.name for tool in await client.list_tools()] == names(gateway, "researcher")
        seen = await client.call_tool("get_node", {"nodeId": "root"})
        assert seen.structured_content is not None
        assert seen.structured_content["nodeId"] == "root"
        refused = await client.call_tool("get_node", {"nodeId": "nowhere"}, raise_on_error=False)
        assert refused.is_error
