"""Figures and filters agree: what is refused, failed or waiting has one definition, before a restart and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from grove_kit import ManualClock
from waiting import eventually
from web.held import holding
from web.operating import Desk, operating

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


def project(folder: Path) -> dict[str, Any]:
    return {"agents": AGENTS, "workspace": {"store": f"sqlite:{folder / 'grove.db'}", "allowUnknownTypes": True}}


async def figures(desk: Desk, agent: str = "") -> dict[str, int]:
    """What the chart of the last day adds up to."""
    minutes = (await desk.get("/api/traffic", **({"agent": agent} if agent else {})))["minutes"]
    return {
        name: sum(minute[name] for minute in minutes)
        for name in ("calls", "failures", "refusals", "waiting", "cancelled")
    }


async def found(desk: Desk, **query: str) -> int:
    """How many calls the audit log has."""
    return len((await desk.get("/api/audit", kind="call", limit="1000", **query))["items"])


async def test_figures_agree_with_the_audit_log_before_and_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with operating(project(tmp_path), clock=clock) as desk:
        writer = await desk.grove.agent("writer")
        before = await writer.call("get_node", {"nodeId": "root"})
        token = {"versionToken": before["version"]}
        planted = await writer.call("import_merge", {"json": SHED, "strategy": "upsert", **token})
        assert "error" not in planted, planted
        for agent, tool, arguments in CALLS:
            await (await desk.grove.agent(agent)).call(tool, {**arguments, **({} if agent == "reader" else token)})
        assert await figures(desk) == {"calls": 7, "failures": 2, "refusals": 1, "waiting": 1, "cancelled": 0}
        assert await figures(desk, "reader") == {"calls": 4, "failures": 2, "refusals": 1, "waiting": 0, "cancelled": 0}
        counted = {outcome: await found(desk, outcome=outcome) for outcome in ("failure", "refused", "waiting")}
        assert counted == {"failure": 2, "refused": 1, "waiting": 1}
        assert 'outcome="waiting",tool="remove_node"' in (await desk.operator.get("/metrics")).text
    clock.now += 3_600
    async with operating(project(tmp_path), clock=clock) as desk:
        while (await figures(desk))["calls"] < 7:  # counted in beside the first requests
            await anyio.sleep(0.01)
        assert await figures(desk) == {"calls": 7, "failures": 2, "refusals": 1, "waiting": 1, "cancelled": 0}
        await (await desk.grove.agent("reader")).call("get_node", {"nodeId": "root"})
        assert (await figures(desk))["calls"] == 8
        last_hour = (await desk.get("/api/project"))["traffic"]
        assert [minute["calls"] for minute in last_hour] == [1]


async def test_a_call_whose_client_went_away_has_not_failed(tmp_path: Path) -> None:
    clock = ManualClock()
    agents = {"waiter": {"role": "editor", "tools": ["hold"]}}
    once = {"calls": 1, "failures": 0, "refusals": 0, "waiting": 0, "cancelled": 1}
    async with holding() as held:
        settings = {**project(tmp_path), "agents": agents, "httpTools": {"hold": held.tool()}}
        async with operating(settings, clock=clock) as desk:
            waiter = await desk.grove.agent("waiter")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waiter.call, "hold", {"key": "k"})
                await eventually(lambda: held.arrived)
                tasks.cancel_scope.cancel()
            assert await figures(desk) == once
            assert await found(desk, outcome="cancelled") == 1
        async with operating(settings, clock=clock) as desk:
            while (await figures(desk))["calls"] < 1:  # counted in beside the first requests
                await anyio.sleep(0.01)
            assert await figures(desk) == once
