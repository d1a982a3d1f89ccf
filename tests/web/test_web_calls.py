"""What an operator can find out about one call, and about one run."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from e2e.wire import call_body, modern_headers
from mcp_text import told_on_wire
from runners.endpoint import obeying
from runners.endpoint import serving as serving_model
from toolgrove.events import ApprovalRequested, ToolSucceeded
from waiting import eventually
from web.operating import Desk, operating

pytestmark = pytest.mark.anyio
AGENTS: dict[str, Any] = {
    "gardener": {"role": "editor", "tools": ["*"], "approve": ["remove_*"], "toolBudget": 20_000},
    "chief": {"role": "editor", "tools": ["*"], "toolBudget": 20_000},
}
PROJECT: dict[str, Any] = {"agents": AGENTS, "workspace": {"allowUnknownTypes": True}}
BED = {"parentNodeId": "root", "payloadType": "Bed", "payloadProps": {"name": "Herbs", "sun": "half"}}


async def latest(desk: Desk, tool: str, **query: str) -> dict[str, Any]:
    """The page of the newest call of a tool."""
    (record,) = (await desk.get("/api/audit", tool=tool, newest="1", limit="1", **query))["items"]
    return dict(await desk.get(f"/api/calls/{record['callId']}"))


async def test_a_call_shows_what_it_changed_by_name_before_and_after() -> None:
    async with operating(PROJECT) as desk:
        bed = str((await desk.change("gardener", "add_child", **BED))["nodeId"])
        added = await latest(desk, "add_child")
        assert added["record"]["arguments"]["payloadProps"]["name"] == "Herbs"
        assert added["record"]["result"]["nodeId"] == bed
        assert [one["payload"]["name"] for one in added["change"]["added"]] == ["Herbs"]
        assert added["change"]["names"][bed] == "Herbs"
        patch = {"name": "Kitchen herbs", "sun": "full"}
        await desk.change("gardener", "update_payload", nodeId=bed, patch=patch)
        await desk.change("gardener", "update_payload", nodeId=bed, patch={"sun": "shade"})  # later, and not its doing
        (first,) = (await desk.get("/api/audit", tool="update_payload", limit="1"))["items"]
        story = await desk.get(f"/api/calls/{first['callId']}")
        (changed,) = story["change"]["changed"]
        assert changed["properties"]["sun"] == {"old": "half", "new": "full"}
        assert story["change"]["names"][bed] == "Kitchen herbs"
        assert story["access"]["verdict"]["verdict"] == "granted"
        assert (story["access"]["same"], story["access"]["approval"]) == (True, None)
        assert (story["approval"], story["delegated"], story["begun"]) == (None, [], False)


async def test_a_call_that_waited_leads_to_its_approval_and_to_the_call_that_ran() -> None:
    async with operating(PROJECT) as desk:
        bed = str((await desk.change("gardener", "add_child", **BED))["nodeId"])
        await desk.change("gardener", "remove_node", nodeId=bed)
        waiting = await latest(desk, "remove_node")
        assert (waiting["record"]["outcome"], waiting["approval"]["state"]) == ("waiting", "pending")
        assert waiting["access"]["approval"] is not None
        assert "Herbs" in waiting["approval"]["effect"]
        await desk.operator.post(f"/api/approvals/{waiting['approval']['id']}", json={"approve": True})
        await desk.change("gardener", "remove_node", nodeId=bed)
        ran = await latest(desk, "remove_node", outcome="success")
        assert ran["approval"]["decidedBy"] == "operator"
        assert [one["payload"]["name"] for one in ran["change"]["removed"]] == ["Herbs"]
        again = await desk.get(f"/api/calls/{waiting['record']['callId']}")
        assert again["approval"]["callId"] == ran["record"]["callId"]


async def test_a_call_that_nobody_made_is_not_found() -> None:
    async with operating(PROJECT) as desk:
        answer = await desk.operator.get("/api/calls/c0-0")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "call")
        answer = await desk.operator.get("/api/runs/r0-0")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "run")


async def test_a_call_with_a_progress_token_is_held_open_until_a_person_agrees() -> None:
    async with operating(PROJECT) as desk:
        bed = str((await desk.change("gardener", "add_child", **BED))["nodeId"])
        arguments = {"nodeId": bed, "versionToken": await desk.version("gardener")}
        told: list[Any] = []

        async def call() -> None:
            told.extend(await desk.mcp("gardener", "remove_node", progress=True, **arguments))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: _some(desk))
            approval = await desk.waiting()
            await desk.operator.post(f"/api/approvals/{approval['id']}", json={"approve": True})
        *said, answer = told
        assert "Waiting for a person to approve remove_node" in json.dumps(said)
        assert "error" not in told_on_wire(answer["result"])
        outcomes = [one["outcome"] for one in (await desk.get("/api/audit", tool="remove_node"))["items"]]
        assert outcomes == ["success"]


async def _some(desk: Desk) -> bool:
    return bool((await desk.get("/api/approvals", state="pending"))["items"])


@pytest.mark.parametrize(
    ("hold", "by", "progress"),
    [(600, "gardener", False), (600, "(operator)", True), (0, "gardener", True), (0.05, "gardener", True)],
    ids=["without a token", "by the operator", "held for no time", "after a while"],
)
async def test_other_calls_are_told_that_they_wait(hold: float, by: str, progress: bool) -> None:
    async with operating({**PROJECT, "approvals": {"hold": hold}}) as desk:
        bed = str((await desk.change("gardener", "add_child", **BED))["nodeId"])
        arguments = {"nodeId": bed, "versionToken": await desk.version("gardener")}
        *_, answer = await desk.mcp("gardener", "remove_node", by=by, progress=progress, **arguments)
        error = told_on_wire(answer["result"])["error"]
        assert (error["code"], error["reason"]) == ("forbidden", "approval_required")
        assert (await latest(desk, "remove_node"))["record"]["outcome"] == "waiting"


async def test_a_gateway_that_ends_lets_go_of_calls_that_wait() -> None:
    async with operating({**PROJECT, "approvals": {"hold": 600}}) as desk:
        bed = str((await desk.change("gardener", "add_child", **BED))["nodeId"])
        arguments = {"nodeId": bed, "versionToken": await desk.version("gardener")}
        told: list[Any] = []

        async def call() -> None:
            told.extend(await desk.mcp("gardener", "remove_node", progress=True, **arguments))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: _some(desk))
            desk.grove.approvals.let_go()
        assert told_on_wire(told[-1]["result"])["error"]["reason"] == "approval_required"
        assert (await desk.waiting())["tool"] == "remove_node"


async def test_a_run_can_be_looked_at_with_its_sub_agents_and_what_they_said() -> None:
    async with serving_model(obeying) as model:
        runner = {"kind": "openai", "url": model.url, "model": "obeying"}
        async with operating({**PROJECT, "runner": runner}) as desk:
            spawned = {"agents": [{"agent": "gardener", "input": json.dumps(["get_node", {"nodeId": "root"}])}]}
            task = json.dumps(["spawn_agents", spawned])
            streamed = await desk.operator.post("/agents/chief/runs", json={"input": task})
            assert streamed.status_code == 200, streamed.text
            (summary,) = (await desk.get("/api/runs"))["items"]
            assert (summary["agent"], summary["kind"], summary["state"]) == ("chief", "model", "success")
            story = await desk.get(f"/api/runs/{summary['id']}")
            assert story["input"] == task
            kinds = [event["type"] for event in story["events"]]
            assert kinds[-1] == "run_finished"
            assert "text" in kinds
            below = [event for event in story["events"] if event["depth"] == 1 and event["type"] == "tool_succeeded"]
            assert {event["agent"] for event in below} == {"gardener"}
            assert not any("result" in event for event in story["events"])
            spawning = await latest(desk, "spawn_agents")
            assert [one["agent"] for one in spawning["delegated"]] == ["gardener", "gardener"]
            assert summary["calls"] == len(await _records(desk, run=summary["id"]))


async def test_a_call_of_a_sub_agent_tells_by_which_rule_it_had_the_tool() -> None:
    async with serving_model(obeying) as model:
        runner = {"kind": "openai", "url": model.url, "model": "obeying"}
        async with operating({**PROJECT, "runner": runner}) as desk:
            spawned = {"agents": [{"agent": "gardener", "input": json.dumps(["list_bookmarks", {}])}]}
            await desk.operator.post("/agents/chief/runs", json={"input": json.dumps(["spawn_agents", spawned])})
            story = await latest(desk, "list_bookmarks")
            assert story["record"]["chain"] == ["chief", "gardener"]
            assert (story["access"]["verdict"]["rule"], story["access"]["same"]) == ("tools: *", True)


async def test_events_tell_the_operator_from_the_agent_and_no_agent_passes_for_one() -> None:
    async with operating(PROJECT) as desk:
        heard: list[Any] = []
        desk.grove.listen(heard.append)
        for by in ("gardener", "(operator)"):
            await desk.mcp("gardener", "get_node", by=by, nodeId="root")
        assert [event.by for event in heard if isinstance(event, ToolSucceeded)] == [None, "operator"]
        body = call_body("get_node", {"nodeId": "root"}, _meta={"toolgrove/session": "(operator)/me"})
        headers = modern_headers("tools/call", "get_node")
        await desk.http["gardener"].post("/agents/gardener/mcp", json=body, headers=headers)
        assert (await latest(desk, "get_node"))["record"]["session"] == "gardener"


async def test_an_approval_says_whether_the_operator_or_the_agent_asked_and_no_agent_passes_for_one() -> None:
    async with operating(PROJECT) as desk:
        heard: list[Any] = []
        desk.grove.listen(heard.append)

        async def asked_by() -> list[str | None]:
            return [one["askedBy"] for one in (await desk.get("/api/approvals", state="pending"))["items"]]

        beds = [str((await desk.change("gardener", "add_child", **BED))["nodeId"]) for _ in range(2)]
        removal: dict[str, Any] = {"nodeId": beds[0], "versionToken": await desk.version("gardener")}
        await desk.mcp("gardener", "remove_node", by="(operator)", **removal)
        assert await asked_by() == ["operator"]
        await desk.mcp("gardener", "remove_node", **removal)
        assert await asked_by() == [None]
        forged = call_body("remove_node", {**removal, "nodeId": beds[1]}, _meta={"toolgrove/session": "(operator)"})
        headers = modern_headers("tools/call", "remove_node")
        await desk.http["gardener"].post("/agents/gardener/mcp", json=forged, headers=headers)
        assert await asked_by() == [None, None]
        assert [one.asked_by for one in heard if isinstance(one, ApprovalRequested)] == ["operator", None]


async def test_what_sub_agents_did_for_a_call_is_told_from_the_log() -> None:
    async with operating(PROJECT) as desk:
        await desk.change("gardener", "add_child", **BED)
        (record,) = await _records(desk, tool="add_child")
        story = await desk.get(f"/api/runs/{record['runId']}")
        assert (story["kept"], story["agent"], story["state"]) == (False, "gardener", "ended")
        assert [event["tool"] for event in story["events"]] == ["add_child"]


async def _records(desk: Desk, **query: str) -> list[dict[str, Any]]:
    return list((await desk.get("/api/audit", kind="call", **query))["items"])
