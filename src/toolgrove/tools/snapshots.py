"""Snapshots of the tree, and what differs between them."""

from __future__ import annotations

from toolgrove.errors import Forbidden
from toolgrove.notation.times import to_seconds
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import DESTROYS, READS, WRITES, Family
from toolgrove.tools.diff_answer import diff_answer
from toolgrove.tools.schema import COUNT, DIFF, ID_LIST, PAGING, STRING, listing, node_id, record, text
from toolgrove.tree.diff import diff_subtrees
from toolgrove.tree.effects import SnapshotChange, TreeSnapshot
from toolgrove.tree.footprint import VIEW
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 50
_SNAPSHOT_ID = text("The id that snapshot_create gave.", minLength=1)
_DIFF_PAGE = {**DIFF, "nextPageToken": STRING}
_SNAPSHOT = {"snapshotId": STRING, "label": STRING, "agent": STRING, "createdAt": STRING, "nodeCount": COUNT}


def _snapshot_json(snapshot: TreeSnapshot) -> Result:
    return {
        "snapshotId": snapshot.id,
        "label": snapshot.label,
        "agent": snapshot.agent,
        "createdAt": to_seconds(snapshot.created),
        "nodeCount": snapshot.nodes,
    }


@family.tool(
    WRITES,
    arguments={"label": text("What to call it.", maxLength=200)},
    required=("label",),
    returns=_SNAPSHOT,
    rests_on=lambda tree, arguments: VIEW,
    example={"label": "before the move"},
)
def snapshot_create(context: ToolContext, arguments: Arguments) -> Result:
    """Remember the whole tree as it is now; costs next to nothing."""
    held = context.workspace.snapshots
    context.limits.check("label", len(held) + 1, context.limits.snapshots, "Delete snapshots you no longer need.")
    snapshot = TreeSnapshot(
        id=context.workspace.next_snapshot_id(),
        label=arguments["label"],
        agent=context.caller.agent,
        seq=context.workspace.tree_seq,
        created=context.now,
        nodes=len(context.tree),
    )
    context.changes.append(SnapshotChange(snapshot=snapshot))
    return _snapshot_json(snapshot)


@family.tool(READS, arguments={}, returns={"items": listing(record(_SNAPSHOT, *_SNAPSHOT))}, example={})
def snapshot_list(context: ToolContext, arguments: Arguments) -> Result:
    """List the snapshots, oldest first."""
    return {"items": [_snapshot_json(snapshot) for snapshot in context.workspace.snapshots.values()]}


@family.tool(
    DESTROYS,
    arguments={"snapshotId": _SNAPSHOT_ID},
    required=("snapshotId",),
    returns={"snapshotId": STRING, "changed": record(dict.fromkeys(DIFF, COUNT), *DIFF)},
    example={"snapshotId": "s1"},
)
def snapshot_restore(context: ToolContext, arguments: Arguments) -> Result:
    """Bring the whole tree back to a snapshot; undo takes that back."""
    workspace = context.workspace
    snapshot = workspace.snapshot(arguments["snapshotId"])
    workspace.restore(snapshot)
    changed = {name: len(entries) for name, entries in workspace.pending().to_json().items()}
    context.reviving = workspace.history.back_to(snapshot.seq)
    return {"snapshotId": snapshot.id, "changed": changed}


@family.tool(
    DESTROYS,
    arguments={"nodeId": node_id("The top of the branch."), "snapshotId": _SNAPSHOT_ID},
    required=("nodeId", "snapshotId"),
    returns={
        "nodeId": STRING,
        "snapshotId": STRING,
        "changed": record(dict.fromkeys(DIFF, COUNT), *DIFF),
        "sentBack": {**ID_LIST, "description": f"What went back to places elsewhere, at most {_NAMED_IDS} of them."},
    },
    example={"nodeId": "house", "snapshotId": "s1"},
)
def restore_subtree(context: ToolContext, arguments: Arguments) -> Result:
    """Bring one branch back to a snapshot, exactly: place, order, tags and properties. What came into it from
    elsewhere goes back there, what is new in it goes; undo takes that back."""
    workspace = context.workspace
    snapshot = workspace.snapshot(arguments["snapshotId"])
    sent_back = workspace.restore_branch(arguments["nodeId"], snapshot)
    changed = {name: len(entries) for name, entries in workspace.pending().to_json().items()}
    context.reviving = workspace.history.back_to(snapshot.seq)
    told = {"nodeId": arguments["nodeId"], "snapshotId": snapshot.id, "changed": changed}
    return {**told, "sentBack": sent_back[:_NAMED_IDS]}


@family.tool(
    DESTROYS,
    arguments={"snapshotId": _SNAPSHOT_ID},
    required=("snapshotId",),
    returns={"snapshotId": STRING},
    rests_on=lambda tree, arguments: VIEW,
    example={"snapshotId": "s1"},
)
def snapshot_delete(context: ToolContext, arguments: Arguments) -> Result:
    """Forget a snapshot; the tree stays as it is."""
    snapshot = context.workspace.snapshot(arguments["snapshotId"])
    if any(root.agent != snapshot.agent for root in context.caller.write_roots):
        raise Forbidden("You may delete only snapshots of your own.", reason="write_root")
    context.changes.append(SnapshotChange(snapshot=snapshot, dropped=True))
    return {"snapshotId": snapshot.id}


@family.tool(
    READS,
    arguments={
        "a": text("A snapshot id, or 'current'.", minLength=1),
        "b": text("A snapshot id, or 'current'.", minLength=1),
        **PAGING,
    },
    required=("a", "b"),
    returns=_DIFF_PAGE,
    optional=("nextPageToken",),
    example={"a": "s1", "b": "current"},
)
def snapshot_diff(context: ToolContext, arguments: Arguments) -> Result:
    """What was added, removed, moved, reordered and changed from snapshot a to snapshot b."""
    return diff_answer(context, arguments, context.workspace.diff(arguments["a"], arguments["b"]))


@family.tool(
    READS,
    arguments={"aId": node_id("The top of one subtree."), "bId": node_id("The top of the other."), **PAGING},
    required=("aId", "bId"),
    returns=_DIFF_PAGE,
    optional=("nextPageToken",),
    example={"aId": "house", "bId": "property"},
)
def diff_subtree(context: ToolContext, arguments: Arguments) -> Result:
    """Compare two subtrees of the tree: children pair up by type and name, then by order."""
    diff = diff_subtrees(context.tree[arguments["aId"]], context.tree[arguments["bId"]])
    return diff_answer(context, arguments, diff)
