"""Sources for the operator: how each stands and why, its tools, who has them, how they do, and a fresh start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from faults.kit import BUDGET, Journal, fake
from toolgrove import Config, Grove
from waiting import eventually

pytestmark = pytest.mark.anyio

ORDER = {"method": "POST", "url": "https://shop.example/orders?key=abc&page=${env:PAGE}"}
AGENTS: dict[str, Any] = {
    "reader": {"tools": ["get_node", "up_*"]},
    "writer": {"role": "editor", "tools": ["*"], "approve": ["up_erase"]},
}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
async def grove(tmp_path: Path, journal: Journal) -> AsyncIterator[Grove]:
    loud = {"command": "sh", "args": ["-c", "echo cannot find the certificate >&2; exit 3", "--api-key", "k-123"]}
    servers = {"up": fake("healthy", journal), "loud": loud, "off": {**fake(), "disabled": True}}
    config = {"mcpServers": servers, "httpTools": {"order": ORDER}, "agents": AGENTS, "startupBudget": BUDGET}
    with anyio.fail_after(60):
        async with Grove(Config.model_validate({**config, "state": str(tmp_path / "state")})) as grove:
            yield grove


@pytest.fixture
async def http(grove: Grove) -> AsyncIterator[httpx2.AsyncClient]:
    app = grove.asgi_app(anonymous=True)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


async def statuses(http: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    items = (await http.get("/api/sources")).json()["items"]
    return {one["name"]: one for one in items}


async def test_every_source_says_how_it_stands_where_it_is_and_its_last_words(http: httpx2.AsyncClient) -> None:
    found = await statuses(http)
    assert list(found) == ["up", "loud", "order", "off", "workspace", "coordination"]
    assert {name: one["state"] for name, one in found.items()} == {
        "up": "up",
        "loud": "down",
        "order": "up",
        "off": "disabled",
        "workspace": "up",
        "coordination": "up",
    }
    assert "exited with status 3" in found["loud"]["problem"]
    assert found["loud"]["lastWords"] == ["cannot find the certificate"]
    assert found["up"]["lastWords"] == []
    assert [name for name, one in found.items() if one["restarts"]] == ["up", "loud", "order"]


async def test_neither_a_command_nor_an_address_shows_the_value_of_a_secret(http: httpx2.AsyncClient) -> None:
    found = await statuses(http)
    assert found["loud"]["where"].startswith("sh -c ")
    assert found["loud"]["where"].endswith("--api-key •••")
    assert found["order"]["where"] == "POST https://shop.example/orders?key=•••&page=${env:PAGE}"


async def test_a_source_shows_its_tools_with_definition_pin_and_who_has_them(http: httpx2.AsyncClient) -> None:
    view = (await http.get("/api/sources/up")).json()
    tools = {one["name"]: one for one in view["tools"]}
    assert tools["up_erase"]["access"] == {"reader": "restricted", "writer": "asks"}
    assert tools["up_erase"]["changes"] is True
    other = next(one for one in tools.values() if one["changes"] is False)
    assert other["access"] == {"reader": "granted", "writer": "granted"}
    assert other["definition"]["inputSchema"]["type"] == "object"
    assert (other["standing"], other["pin"]["state"]) == ("ready", "pinned")
    reader, writer = view["agents"]
    assert (reader["name"], writer["tools"]) == ("reader", len(tools))
    assert 0 < reader["tokens"] < writer["tokens"]
    built_in = (await http.get("/api/sources/workspace")).json()
    assert {"get_node", "undo"} < {one["name"] for one in built_in["tools"]}
    assert (await http.get("/api/sources/nothing")).status_code == 404


async def test_calls_failures_refusals_and_times_are_counted_by_tool(http: httpx2.AsyncClient, grove: Grove) -> None:
    reader, writer = await grove.agent("reader"), await grove.agent("writer")
    await reader.call("get_node", {"nodeId": "root"})
    await reader.call("get_node", {"nodeId": "nowhere"})
    await reader.call("nonsense")
    waiting = await writer.call("up_erase")
    assert waiting["error"]["reason"] == "approval_required"
    await reader.call("up_erase")
    found = {one["name"]: one["figures"] for one in (await http.get("/api/sources/workspace")).json()["tools"]}
    figures = found["get_node"]
    assert (figures["calls"], figures["failures"], figures["refusals"]) == (2, 1, 0)
    assert 0 < figures["medianMs"] <= figures["slowMs"]
    assert found["undo"] == {"calls": 0, "failures": 0, "refusals": 0, "medianMs": None, "slowMs": None}
    erase = (await statuses(http))["up"]["figures"]
    assert (erase["calls"], erase["failures"], erase["refusals"]) == (2, 0, 1)


async def test_a_restart_starts_the_server_anew_and_is_on_record(
    http: httpx2.AsyncClient, grove: Grove, journal: Journal
) -> None:
    await http.get("/api/sources")
    assert len(journal.pids) == 1
    assert (await http.post("/api/sources/up/restart")).json()["name"] == "up"
    await eventually(lambda: len(journal.pids) == 2)
    assert (await statuses(http))["up"]["state"] == "up"
    assert "error" not in await (await grove.agent("reader")).call("up_echo", {"text": "hi"})
    records = (await http.get("/api/audit", params={"kind": "configuration"})).json()["items"]
    assert ("source.restarted", "operator", ["up"]) in [
        (one["operation"], one["by"], one["targets"]) for one in records
    ]
    assert (await http.post("/api/sources/workspace/restart")).status_code == 409


async def test_a_server_that_waits_to_be_tried_again_is_tried_at_once(tmp_path: Path) -> None:
    flag = tmp_path / "there"
    late = fake()
    late = {
        **late,
        "command": "sh",
        "args": ["-c", f'[ -e {flag} ] && exec "$@"; exit 1', "sh", late["command"], *late["args"]],
    }
    with anyio.fail_after(60):
        async with Grove(Config.model_validate({"mcpServers": {"up": late}, "startupBudget": BUDGET})) as grove:
            source: Any = grove.pool.source("up")
            for _ in range(6):  # which makes the pauses long
                source.restart()
                await eventually(lambda: source._server.problem != "")
            flag.touch()
            source.restart()
            await eventually(lambda: grove.pool.latest.sources["up"].problem == "")
