"""A grove's agent behind the bridge: the same tools, the same answers, over MCP and as OpenAI definitions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from starlette.applications import Starlette
from starlette.testclient import TestClient

from mcp_serve.http import StreamableHTTP
from mcp_text import told
from toolgrove import Agent, Grove
from toolgrove.mcp_face import mcp_endpoint

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])


@asynccontextmanager
async def connected(agent: Agent, era: str) -> AsyncIterator[Client]:
    endpoint = mcp_endpoint(agent, "1")
    async with Client(endpoint.server, mode=era) as client:
        yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    content = told(result)
    assert result.is_error is ("error" in content)
    return content


@ERAS
@pytest.mark.requirement("TREE-000-16", "TREE-001-28")
async def test_a_whole_session_over_mcp(era: str) -> None:
    async with Grove() as grove:
        editor = await grove.agent("editor")
        async with connected(editor, era) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(listed) == {spec.name for spec in editor.tools}
            assert listed["get_node"].annotations is not None
            assert listed["get_node"].annotations.read_only_hint is True
            assert all(tool.output_schema for tool in listed.values())

            version = (await answer(client, "get_node", nodeId="root"))["version"]
            request = {
                "parentNodeId": "root",
                "payloadType": "Place",
                "payloadProps": {"name": "House"},
                "versionToken": version,
                "idempotencyKey": "house-1",
            }
            house = await answer(client, "add_child", **request)
            assert await answer(client, "add_child", **request) == house

            stale = await answer(client, "remove_node", nodeId=house["nodeId"], versionToken=version)
            assert stale["error"]["code"] == "conflict"
            assert stale["error"]["latestVersion"] == house["version"]

            renamed = await answer(
                client,
                "update_payload_property",
                nodeId=house["nodeId"],
                propertyName="name",
                newValue="Cottage",
                versionToken=stale["error"]["latestVersion"],
            )
            found = await answer(client, "select_nodes", queryDsl="name = Cottage")
            assert [node["nodeId"] for node in found["items"]] == [house["nodeId"]]
            await answer(client, "undo", versionToken=renamed["version"])
            assert (await answer(client, "get_node", nodeId=house["nodeId"]))["payload"] == {"name": "House"}


@ERAS
async def test_a_reader_neither_sees_nor_runs_what_changes_the_tree(era: str) -> None:
    async with Grove() as grove:
        reader = await grove.agent("reader")
        async with connected(reader, era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "get_node" in names
            assert "add_child" not in names
            refused = await answer(client, "remove_node", nodeId="root", versionToken="x")
            assert refused["error"]["code"] == "forbidden"


async def test_over_mcp_and_in_process_the_answers_are_the_same() -> None:
    async with Grove() as grove:
        agent = await grove.agent("reader")
        async with connected(agent, "auto") as client:
            for tool, arguments in [
                ("get_node", {"nodeId": "root"}),
                ("get_node", {"nodeId": "nowhere"}),
                ("get_view", {"rootNodeId": "root"}),
                ("select_nodes", {"queryDsl": "name contain Kitchen"}),
                ("no_such_tool", {}),
            ]:
                assert await answer(client, tool, **arguments) == await agent.call(tool, arguments)


def test_the_endpoint_answers_over_http() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_node",
        "Accept": "application/json, text/event-stream",
    }
    params = {"name": "get_node", "arguments": {"nodeId": "root"}, "_meta": meta}

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with Grove() as grove:
            agent = await grove.agent("reader")
            mcp = StreamableHTTP(mcp_endpoint(agent, "1"))
            app.router.routes.extend(mcp.routes)
            async with mcp.running():
                yield

    with TestClient(Starlette(lifespan=lifespan)) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answered = http.post("/mcp", json=body, headers=headers).json()
    assert answered["result"]["structuredContent"]["nodeId"] == "root"


async def test_openai_definitions_are_the_same_tools() -> None:
    async with Grove() as grove:
        agent = await grove.agent("reader")
    tools = agent.openai_tools(embed_annotations=True)
    assert [tool["function"]["name"] for tool in tools] == [spec.name for spec in agent.tools]
    assert "readonly=true" in tools[0]["function"]["description"]
    for tool in agent.openai_tools(strict=True):
        assert isinstance(tool["function"]["strict"], bool)


async def test_what_the_endpoint_refuses_by_itself_says_whose_word_it_is() -> None:
    async with Grove() as grove:
        endpoint = mcp_endpoint(await grove.agent("reader"), "1")
        async with Client(endpoint.server) as client:
            await endpoint.drain(0)
            refused = told(await client.call_tool("get_node", {"nodeId": "root"}))
    assert (refused["error"]["code"], refused["error"]["reason"]) == ("internal", "not_served")
    assert "shutting down" in refused["error"]["message"]
