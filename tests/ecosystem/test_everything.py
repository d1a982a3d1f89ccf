"""What the server "everything" says by itself, heard by a client of the gateway: updates, its log, a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from e2e.node_tools import NODE
from pool.mcp.test_fronts import Person
from pool.mcp.test_news import Ear
from upstreams.servers import EVERYTHING
from waiting import eventually
from web.gateway import serving

pytestmark = [pytest.mark.ecosystem, pytest.mark.anyio, pytest.mark.timeout(300)]
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])
WATCHED = "demo://resource/dynamic/text/1"


def answered(params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


@ERAS
async def test_it_updates_logs_and_asks_through_the_gateway(era: str, tmp_path: Path) -> None:
    server = {"command": str(NODE), "args": [str(EVERYTHING), "stdio"], "elicitation": True}
    agent = {"role": "editor", "tools": ["every_*"], "resources": ["every:demo://*"], "prompts": ["every_*"]}
    config = {"mcpServers": {"every": server}, "agents": {"all": agent}}
    person = Person(answered)
    ears: list[Ear] = []

    async def heard(message: Any) -> None:
        for ear in ears:
            await ear.told(message)

    with serving(tmp_path, config) as gateway:
        callbacks: Any = {
            "elicitation_callback": person.elicit,
            "logging_callback": person.log,
            "message_handler": heard,
        }
        async with gateway.connect("all", era, **callbacks) as client:
            ears.append(Ear(client))
            assert await ears[0].watch(WATCHED) == {WATCHED}
            await client.call_tool("every_toggle-subscriber-updates")
            await eventually(lambda: ears[0].heard[WATCHED])
            result: Any = await client.call_tool("every_trigger-elicitation-request")
            assert person.asked[0].message.startswith("Server 'every' asks: ")
            assert any("Ada" in block.text for block in result.content)
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "every_trigger-sampling-request" not in names
            assert "every_get-roots-list" not in names
            await ears[0].close()
        async with gateway.http("operator") as http:
            (source,) = (await http.get("/api/project")).json()["sources"]
            assert "Everything" in source["instructions"]
            await eventually(lambda: 'server="every"' in gateway.log or "server every: [" in gateway.log)
            assert 'toolgrove_upstream_messages_total{level="info",server="every"}' in (await http.get("/metrics")).text
