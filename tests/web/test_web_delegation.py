"""Delegation over a real gateway, with a model behind real HTTP: nobody does through another what it may not do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from runners.endpoint import obeying
from runners.endpoint import serving as model
from toolgrove.tools import DECLARATIONS
from waiting import DEADLINE
from web.gateway import Gateway, events, serving

pytestmark = pytest.mark.anyio
EVERYTHING = {"role": "editor", "tools": ["*"]}
AGENTS: dict[str, Any] = {
    "alice": EVERYTHING,
    "bob": {"role": "reader", "tools": ["*"]},
    "fenced": {**EVERYTHING, "writeRoot": "n2"},
    "careful": {**EVERYTHING, "approve": ["remove_*"]},
    "slow": {**EVERYTHING, "rateLimit": "2/minute"},
}
ADD = {"payloadType": "Note", "payloadProps": {}}
Call = tuple[str, dict[str, Any]]


@asynccontextmanager
async def project(folder: Path) -> AsyncIterator[Gateway]:
    """A gateway with n1 and n2 below the root, both alice's, who has a bookmark."""
    async with model(obeying) as endpoint:
        runner = {"kind": "openai", "url": endpoint.url, "model": "scripted"}
        workspace: dict[str, Any] = {"payloadTypes": {"Note": {}}}
        with serving(folder / "project", {"workspace": workspace, "agents": AGENTS, "runner": runner}) as served:
            for call in (
                ("add_child", {"parentNodeId": "root", **ADD}),
                ("add_child", {"parentNodeId": "root", **ADD}),
                ("bookmark", {"nodeId": "n1", "label": "mine"}),
            ):
                assert "error" not in await direct(served, "alice", call)
            yield served


async def run(gateway: Gateway, agent: str, *calls: Call) -> list[dict[str, Any]]:
    form = {"calls": [{"tool": tool, "arguments": arguments} for tool, arguments in calls]}
    async with gateway.http(agent) as http:
        return events((await http.post(f"/agents/{agent}/runs", json=form)).text)


async def direct(gateway: Gateway, agent: str, call: Call) -> dict[str, Any]:
    """What an agent's own call is answered."""
    looked = (await run(gateway, agent, ("get_node", {"nodeId": "root"})))[-2]
    version = {"versionToken": looked["result"]["version"]} if DECLARATIONS[call[0]].mutates else {}
    ended = (await run(gateway, agent, (call[0], {**call[1], **version})))[-2]
    return ended.get("result") or {"error": ended["error"]}


async def through_alice(gateway: Gateway, agent: str, call: Call) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of a run in which alice makes the call for another, and what she was answered."""
    told = await run(gateway, agent, ("spawn_agents", {"agents": [{"agent": "alice", "input": json.dumps(call)}]}))
    (one,) = told[-2]["result"]["results"]
    return told, json.loads(one["output"])


REFUSED: list[tuple[str, Call, str, str | None]] = [
    ("fenced", ("add_child", {"parentNodeId": "n1", **ADD}), "forbidden", "write_root"),
    ("careful", ("remove_node", {"nodeId": "n1"}), "forbidden", "approval_required"),
    ("careful", ("undo", {}), "conflict", "nothing_to_undo"),
    ("bob", ("add_child", {"parentNodeId": "n1", **ADD}), "not_found", None),
    ("slow", ("get_node", {"nodeId": "n1"}), "rate_limited", None),
]


async def test_what_an_agent_may_not_do_another_does_not_do_for_it_and_the_stream_says_so(tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE):
        async with project(tmp_path) as gateway, gateway.http("operator") as operator:
            for agent, call, code, reason in REFUSED:
                told, answered = await through_alice(gateway, agent, call)
                newest = await operator.get("/api/audit", params={"agent": "alice", "newest": "1", "limit": "1"})
                (record,) = newest.json()["items"]
                assert (answered["error"]["code"], answered["error"].get("reason")) == (code, reason), (agent, call)
                (failed,) = [event for event in told if event["type"] == "tool_failed"]
                assert (failed["agent"], failed["depth"], failed["chain"]) == ("alice", 1, [agent, "alice"])
                assert failed["parentCallId"] == told[0]["callId"]
                assert failed["error"]["code"] == code
                assert told[-1]["delegated"] == {"succeeded": 1, "failed": 1}
                assert {event["runId"] for event in told} == {record["runId"]}
                assert (record["chain"], record["depth"]) == ([agent, "alice"], 1)
                assert record["session"] == f"{agent}/{told[0]['callId']}.1"


async def test_what_is_open_to_both_is_done_nothing_else_is_seen_and_one_who_does_not_exist_is_a_failure(
    tmp_path: Path,
) -> None:
    with anyio.fail_after(DEADLINE):
        async with project(tmp_path) as gateway:
            _, inside = await through_alice(gateway, "fenced", ("add_child", {"parentNodeId": "n2", **ADD}))
            _, bookmarks = await through_alice(gateway, "bob", ("list_bookmarks", {}))
            own = await direct(gateway, "alice", ("list_bookmarks", {}))
            taken_back = await direct(gateway, "alice", ("undo", {}))
            nobody = await run(gateway, "bob", ("spawn_agents", {"agents": [{"agent": "nobody", "input": "x"}]}))
    assert inside["nodeId"] == "n3"
    assert bookmarks["items"] == []
    assert [one["label"] for one in own["items"]] == ["mine"]
    assert taken_back["error"]["changedNodeIds"] == ["n3"], "her own last change is n2, on which n3 was built since"

    assert [event["type"] for event in nobody if event["type"] != "tool_progress"] == [
        *("tool_started", "tool_failed", "tool_succeeded", "run_finished")
    ]
    assert nobody[1]["error"]["code"] == "not_found"
    assert (nobody[1]["agent"], nobody[1]["depth"], nobody[1]["parentCallId"]) == ("nobody", 1, nobody[0]["callId"])
    assert nobody[-1]["delegated"] == {"succeeded": 0, "failed": 1}
