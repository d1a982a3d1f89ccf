"""Figures and filters agree: what is refused, failed or waiting has one definition, before a restart and after it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
AGENTS = {
    "writer": {"role": "editor", "tools": ["*"], "approve": ["remove_*"], "writeRoot": "root"},
    "reader": {"tools": ["get_node", "add_child"]},
}
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("reader", "get_node", {"nodeId": "root"}),
    ("reader", "get_node", {"nodeId": "nowhere"}),  # failed
    ("reader", "search", {"query": "a"}),  # failed: no such tool for this agent
    ("reader", "add_child", {"parentNodeId": "root"}),  # refused by the role
    ("writer", "remove_node", {"nodeId": "shed", "versionToken": ""}),  # waits for a person
]
SHED = {"nodeId": "shed", "payloadType": "Shed", "payload": {"name": "Shed"}, "children": []}


@asynccontextmanager
async def operating(folder: Path, clock: ManualClock) -> AsyncIterator[tuple[Grove, httpx2.AsyncClient]]:
    config = {"agents": AGENTS, "workspace": {"store": f"sqlite:{folder / 'grove.db'}", "allowUnknownTypes": True}}
    with anyio.fail_after(DEADLINE):
        async with Grove(Config.model_validate(config), clock=clock) as grove:
            app = grove.asgi_app()
            headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
            async with (
                app.router.lifespan_context(app),
                httpx2.AsyncClient(
                    transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1", headers=headers
                ) as http,
            ):
                yield grove, http


async def figures(http: httpx2.AsyncClient, agent: str = "") -> dict[str, int]:
    """What the chart of the last day adds up to."""
    minutes = (await http.get("/api/traffic", params={"agent": agent} if agent else {})).json()["minutes"]
    return {name: sum(minute[name] for minute in minutes) for name in ("calls", "failures", "refusals", "waiting")}


async def found(http: httpx2.AsyncClient, **query: str) -> int:
    """How many calls the audit log has."""
    page = await http.get("/api/audit", params={"kind": "call", "limit": "1000", **query})
    return len(page.json()["items"])


async def test_figures_agree_with_the_audit_log_before_and_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with operating(tmp_path, clock) as (grove, http):
        writer = await grove.agent("writer")
        before = await writer.call("get_node", {"nodeId": "root"})
        token = {"versionToken": before["version"]}
        planted = await writer.call("import_merge", {"json": SHED, "strategy": "upsert", **token})
        assert "error" not in planted, planted
        for agent, tool, arguments in CALLS:
            await (await grove.agent(agent)).call(tool, {**arguments, **({} if agent == "reader" else token)})
        assert await figures(http) == {"calls": 7, "failures": 2, "refusals": 1, "waiting": 1}
        assert await figures(http, "reader") == {"calls": 4, "failures": 2, "refusals": 1, "waiting": 0}
        counted = {outcome: await found(http, outcome=outcome) for outcome in ("failure", "refused", "waiting")}
        assert counted == {"failure": 2, "refused": 1, "waiting": 1}
        assert 'outcome="waiting",tool="remove_node"' in (await http.get("/metrics")).text
    clock.now += 3_600
    async with operating(tmp_path, clock) as (grove, http):
        while (await figures(http))["calls"] < 7:  # counted in beside the first requests
            await anyio.sleep(0.01)
        assert await figures(http) == {"calls": 7, "failures": 2, "refusals": 1, "waiting": 1}
        await (await grove.agent("reader")).call("get_node", {"nodeId": "root"})
        assert (await figures(http))["calls"] == 8
        last_hour = (await http.get("/api/project")).json()["traffic"]
        assert [minute["calls"] for minute in last_hour] == [1]
