"""Work on a tree as a model does it: reorganising, tagging, reverting a branch, getting an overview."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client

from bench.economy.figure import Figure
from bench.economy.scripted_agent import ScriptedAgent, mended
from toolgrove import Agent, Grove
from toolgrove.mcp_face import mcp_endpoint

STATES = ("open", "doing", "done")
Items = list[dict[str, Any]]


def tasks(count: int) -> Items:
    """A flat list of tasks in three states; of each hundred, 32 are late."""
    return [
        {
            "nodeId": f"task-{at}",
            "parentId": "root",
            "payloadType": "Task",
            "payload": {
                "name": f"Task {at}",
                "status": STATES[at % 3],
                "priority": at * 7 % 100,
                "late": at % 100 < 32,
            },
        }
        for at in range(count)
    ]


def departments(count: int) -> Items:
    """A tree of three levels: departments, projects, tasks."""
    items: Items = []
    for at in range(count - 1):
        level = 0 if at < 20 else 1 if at < 220 else 2
        above = "root" if level == 0 else f"n{at % 20}" if level == 1 else f"n{20 + at % 200}"
        kind = ("Department", "Project", "Task")[level]
        text = "What has to be done, by whom and until when, in a sentence or two as people write them."
        payload = {"name": f"{kind} {at}", "status": STATES[at % 3], "hours": at % 9, "text": text}
        items.append({"nodeId": f"n{at}", "parentId": above, "payloadType": kind, "payload": payload})
    return items


@asynccontextmanager
async def working(items: Items) -> AsyncIterator[tuple[ScriptedAgent, Agent]]:
    """A scripted agent at a tree, and the editor who made it."""
    async with Grove() as grove:
        editor = await grove.agent("editor")
        await prepare(editor, "import_merge", json={"items": items}, strategy="upsert")
        async with Client(mcp_endpoint(editor, "1").server) as client:
            yield ScriptedAgent(client), editor


async def prepare(editor: Agent, tool: str, **arguments: Any) -> None:
    """Change something before the agent begins."""
    version = (await editor.call("get_node", {"nodeId": "root"}))["version"]
    told = await editor.call(tool, {**arguments, "versionToken": version})
    if "error" in told:
        raise RuntimeError(told["error"]["message"])


async def whole(editor: Agent, node: str = "root") -> Any:
    """A subtree as it is, which the agent does not pay for."""
    return json.loads((await editor.call("export_subtree", {"nodeId": node}))["json"])


def demand(held: bool, what: str) -> None:
    """See that the work was done; a cheap agent that does nothing proves nothing."""
    if not held:
        raise RuntimeError(f"not done: {what}")


async def reorganise() -> Sequence[Figure]:
    """300 tasks into a section for each state, each section sorted by priority."""
    async with working(tasks(300)) as (agent, editor):
        found = await agent.call("aggregate", groupBy="status")
        changes: list[dict[str, Any]] = []
        for state in [group["key"] for group in found["groups"]]:
            section = {
                "op": "add",
                "parentId": "root",
                "payloadType": "Section",
                "payload": {"name": state},
                "ref": state,
            }
            query = f"@type = Task and status = {state}"
            changes += [
                section,
                {"op": "move", "at": {"query": query}, "parentId": {"ref": state}},
                {"op": "sort", "at": {"ref": state}, "by": "priority", "direction": "desc"},
            ]
        await agent.change("apply_changes", changes=changes)
        await agent.call("get_subtree", nodeId="root", depthLimit=1, format="outline", maxTokens=500)
        sections = (await whole(editor))["children"]
        demand([section["payload"]["name"] for section in sections] == list(STATES), "a section for each state")
        for section in sections:
            order = [task["payload"]["priority"] for task in section["children"]]
            demand(len(order) == 100 and order == sorted(order, reverse=True), "sections sorted by priority")
        return [
            Figure(name="reorganise 300 nodes", value=agent.calls, limit=4, unit="calls"),
            Figure(name="reorganise 300 nodes", value=agent.tokens, limit=4_000, unit="tokens"),
        ]


async def tag() -> Sequence[Figure]:
    """Tag 96 nodes by a query that is wrong at first, with no version to begin with."""
    async with working(tasks(300)) as (agent, editor):
        query = "type = Task and late = true"
        told = await agent.change("apply_changes", changes=[{"op": "tag", "at": {"query": query}, "add": ["late"]}])
        if "hint" in told:
            changes = [{"op": "tag", "at": {"query": mended(query, told["hint"])}, "add": ["late"]}]
            told = await agent.change("apply_changes", changes=changes)
        tagged = [task for task in (await whole(editor))["children"] if task.get("tags") == ["late"]]
        demand(len(tagged) == 96 and all(task["payload"]["late"] for task in tagged), "96 tasks tagged")
        return [Figure(name="tag 96 nodes by a query", value=agent.calls, limit=3, unit="calls")]


async def revert() -> Sequence[Figure]:
    """One branch back to a snapshot exactly, after it was moved, sorted, tagged, renamed, emptied and added to."""
    async with working(departments(600)) as (agent, editor):
        await prepare(editor, "snapshot_create", label="before")
        before = await whole(editor, "n3")
        elsewhere = await whole(editor, "n5")
        changes = [
            {"op": "sort", "at": "n3", "by": "hours", "direction": "desc"},
            {"op": "tag", "at": {"query": "#n3//*"}, "add": ["seen"]},
            {"op": "set", "at": {"query": "#n3//*[status = open]"}, "path": "text", "value": "gone"},
            {"op": "unset", "at": "n3", "path": "hours"},
            {"op": "remove", "at": {"query": "#n3/*[@index = 1]"}},
            {"op": "add", "parentId": "n3", "payloadType": "Task", "payload": {"name": "new"}},
            {"op": "move", "at": {"query": "#n3/*[@index = 0]"}, "parentId": "n4"},
            {"op": "move", "at": "n3", "parentId": "n4"},
        ]
        await prepare(editor, "apply_changes", changes=changes)
        known = await agent.call("snapshot_list")
        await agent.change("restore_subtree", nodeId="n3", snapshotId=known["items"][-1]["snapshotId"])
        demand(await whole(editor, "n3") == before, "the branch as it was")
        demand(await whole(editor, "n5") == elsewhere, "nothing else changed")
        return [Figure(name="revert one branch exactly", value=agent.calls, limit=3, unit="calls")]


async def overview() -> Sequence[Figure]:
    """What a tree of 5,000 nodes holds, and its upper levels."""
    async with working(departments(5_000)) as (agent, _):
        described = await agent.call("describe_tree")
        demand(described["nodes"] == 5_000, "all nodes counted")
        kinds = {one["payloadType"]: one["count"] for one in described["types"]}
        seen = await agent.call(
            "get_subtree", nodeId="root", format="outline", includedProperties=["name"], depthLimit=2, maxTokens=6_500
        )
        demand(seen["outline"].count("Department") >= kinds["Department"], "every department shown")
        return [Figure(name="overview of 5,000 nodes", value=agent.tokens, limit=8_000, unit="tokens")]


WORK: tuple[Callable[[], Awaitable[Sequence[Figure]]], ...] = (reorganise, tag, revert, overview)
