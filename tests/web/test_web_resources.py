"""Resources and prompts of MCP servers at the gateway: each agent has its own, and gets what it is given later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_text import text_of
from pool.mcp.mcp_kit import Journal
from pool.mcp.test_fronts import Person, accepts, with_questions
from pool.mcp.test_news import ALL, Ear, newsroom
from pool.mcp.test_prompts import SAID as PROMPTS
from pool.mcp.test_resources import SAID, faithful
from waiting import eventually
from web.gateway import started

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])


async def uris(client: Client) -> list[str]:
    return [one.uri for one in (await client.list_resources()).resources]


@ERAS
async def test_each_agent_reads_its_own_and_what_it_is_given_later(era: str, tmp_path: Path) -> None:
    agents: dict[str, Any] = {
        "notes": {"resources": ["n:notes://*"]},
        "private": {"resources": ["n:private://*"], "prompts": ["n_greet"]},
        "none": {"tools": ["get_node"]},
    }
    config = {"mcpServers": {"n": faithful(tmp_path, "n", {**PROMPTS, **SAID})}, "agents": agents}
    with started(tmp_path, config) as gateway:
        async with gateway.connect("notes", era) as client:
            assert "notes://a" in await uris(client)
            assert "private://x" not in await uris(client)
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource("private://x")
        async with gateway.connect("private", era) as client:
            assert await uris(client) == ["private://x"]
            contents: Any = (await client.read_resource("private://x")).contents
            assert contents[0].text == "mine"
            assert [one.name for one in (await client.list_prompts()).prompts] == ["n_greet"]
            content: Any = (await client.get_prompt("n_greet", {"who": "Ada"})).messages[0].content
            assert content.text == "Hello Ada"
        async with gateway.connect("none", era) as client:
            assert client.server_capabilities.resources is None
            assert client.server_capabilities.prompts is None
            assert await uris(client) == []
            gateway.write({**config, "agents": {**agents, "none": {"resources": ["n:notes://a"], "prompts": ["*"]}}})
            await eventually(lambda: _has(client, "notes://a"))
        async with gateway.connect("none", era) as client:
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.prompts is not None
        async with gateway.http("operator") as http:
            receipt = (await http.get("/agents/private/receipt")).json()
            assert [tuple(one.values()) for one in receipt["offered"] if one["kind"] != "template"] == [
                ("resource", "private://x", "n"),
                ("prompt", "n_greet", "n"),
            ]
            records = (await http.get("/api/audit", params={"tool": "resources/read"})).json()["items"]
            assert {(one["agent"], one["outcome"], *one["targets"]) for one in records} == {
                ("notes", "failure", "private://x"),
                ("private", "success", "n:private://x"),
            }


@ERAS
async def test_a_client_at_the_gateway_hears_of_changes_at_a_server_and_is_asked(era: str, tmp_path: Path) -> None:
    ears: list[Ear] = []

    async def told(message: Any) -> None:
        for ear in ears:
            await ear.told(message)

    with newsroom("stdio", "modern" if era == "legacy" else "legacy", tmp_path / "journal") as servers:
        config = {"mcpServers": with_questions(servers), "agents": {"all": ALL}}
        person = Person(accepts)
        with started(tmp_path, config) as gateway:
            async with gateway.connect("all", era, message_handler=told, elicitation_callback=person.elicit) as client:
                ear = Ear(client)
                ears.append(ear)
                assert await uris(client) == ["memo://one"]
                assert await ear.watch("memo://one") == {"memo://one"}
                await client.call_tool("up_touch", {"uri": "memo://one"})
                await client.call_tool("up_grow", {})
                assert '"accept", {"size": 3}' in text_of(await client.call_tool("up_ask", {}))
                await eventually(lambda: ear.heard["memo://one"] and ear.heard["resources"] and ear.heard["prompts"])
                assert await uris(client) == ["memo://one", "memo://two"]
                await ear.close()
            await eventually(lambda: Journal(tmp_path / "journal", 0).of("unwatch") == [["memo://one"]])


async def _has(client: Client, uri: str) -> bool:
    return uri in await uris(client)
