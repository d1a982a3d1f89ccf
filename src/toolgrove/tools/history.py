"""What happened: taking it back, bringing it back, hearing of it."""

from __future__ import annotations

from toolgrove.errors import Conflict, InvalidArgument, NodeNotFound
from toolgrove.notation.json_value import copied
from toolgrove.notation.times import to_seconds
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import READS, WRITES, Family
from toolgrove.tools.schema import COUNT, ID_LIST, OBJECT, PAGING, STRING, listing, node_id, record, text
from toolgrove.tree.diff import payload_changes
from toolgrove.tree.history import Commit
from toolgrove.tree.moment import State
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 50
_REVERTED = {
    "tool": STRING,
    "nodeIds": ID_LIST,
    "nodeCount": COUNT,
    "ofVersion": {**STRING, "description": "The version that the change made."},
    "ofTime": STRING,
}


_EXPECTED = {
    "ofVersion": text(
        "Only this change: the ofVersion that a dry run told. If another one is next, nothing is done.", minLength=1
    )
}


def _revert(context: ToolContext, arguments: Arguments, *, again: bool) -> Result:
    workspace = context.workspace
    reverted = workspace.undo(context.caller, again=again, of_version=arguments.get("ofVersion"))
    touched = list(dict.fromkeys(node_id for commit in reverted for node_id in commit.before))
    context.move, context.reviving = "redo" if again else "undo", reverted
    last = reverted[-1]
    when = {} if last.at is None else {"ofTime": to_seconds(last.at)}
    return {
        "tool": reverted[0].tool,
        "nodeIds": touched[:_NAMED_IDS],
        "nodeCount": len(touched),
        "ofVersion": workspace.version_at(last.seq),
        **when,
    }


@family.tool(WRITES, arguments=_EXPECTED, returns=_REVERTED, optional=("ofTime",), example={})
def undo(context: ToolContext, arguments: Arguments) -> Result:
    """Take back your own last change of the tree, unless others have built on it since."""
    return _revert(context, arguments, again=False)


@family.tool(WRITES, arguments=_EXPECTED, returns=_REVERTED, optional=("ofTime",), example={})
def redo(context: ToolContext, arguments: Arguments) -> Result:
    """Bring back what your last undo took back."""
    return _revert(context, arguments, again=True)


_COMMIT = record(
    {"version": STRING, "agent": STRING, "tool": STRING, "nodeIds": ID_LIST, "nodeCount": COUNT},
    "version",
    "agent",
    "tool",
    "nodeIds",
    "nodeCount",
)


@family.tool(
    READS,
    arguments={"version": text("A version of an earlier result.", minLength=1), **PAGING},
    required=("version",),
    returns={"items": listing(_COMMIT), "nextPageToken": STRING},
    optional=("nextPageToken",),
    example={"version": "$version"},
)
def changes_since(context: ToolContext, arguments: Arguments) -> Result:
    """The changes of the tree after a version, oldest first: who, with which tool, which nodes."""
    workspace = context.workspace
    workspace.check_known(context.caller, arguments["version"])
    seq = workspace.seq_of(arguments["version"])
    if seq is None:
        raise InvalidArgument(
            "This is not a version of this workspace. Use the 'version' of one of your results.", reason="version"
        )
    if seq < workspace.history.floor:
        raise Conflict(
            "The history does not reach back that far. Read the tree again and go on from its version.",
            reason="history_trimmed",
        )
    place = context.place(arguments)
    items, more = context.page(
        arguments,
        iter(workspace.history.since(seq if place is None else place)),
        lambda commit: commit.seq,
        lambda commit: _commit_json(context, commit),
    )
    return {"items": items, **more}


_PART = {**OBJECT, "description": "What differs of parentId, payloadType, payload and tags."}


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node; it may be gone."), **PAGING},
    required=("nodeId",),
    returns={
        "items": listing(
            record(
                {
                    "version": STRING,
                    "at": STRING,
                    "agent": STRING,
                    "tool": STRING,
                    "old": _PART,
                    "new": _PART,
                    "reordered": {"type": "boolean"},
                },
                "version",
                "agent",
                "tool",
            )
        ),
        "complete": {"type": "boolean", "description": "Whether the node's whole life is within reach."},
        "nextPageToken": STRING,
        "hint": STRING,
    },
    optional=("nextPageToken", "hint"),
    example={"nodeId": "kitchen"},
)
def node_history(context: ToolContext, arguments: Arguments) -> Result:
    """What happened to one node, newest first: who, when, with which tool, old and new. An add has no old, a
    removal no new."""
    history, key = context.workspace.history, arguments["nodeId"]
    found: list[tuple[Commit, State | None, State | None]] = []
    later: State | None = context.tree.nodes.get(key)
    for commit in reversed(history.since(history.floor)):
        if key in commit.before:
            found.append((commit, commit.before[key], later))
            later = commit.before[key]
    if not found and later is None:
        raise NodeNotFound(key)
    place = context.place(arguments)
    wanted = (one for one in found if place is None or one[0].seq < place)
    items, more = context.page(arguments, wanted, lambda one: one[0].seq, lambda one: _happened(context, *one))
    complete = history.floor == 0 or later is None
    told: Result = {"items": items, "complete": complete, **more}
    return told if complete else {**told, "hint": _REACH.format(len(history))}


_REACH = (
    "History reaches back over the last {} changes of the tree (workspace.limits.history); what happened before is not "
    "told. Snapshots reach further: get_subtree with asOf."
)


def _happened(context: ToolContext, commit: Commit, was: State | None, now: State | None) -> Result:
    when = {} if commit.at is None else {"at": to_seconds(commit.at)}
    by = {"agent": commit.agent, "tool": commit.tool}
    told: Result = {"version": context.workspace.version_at(commit.seq), **when, **by}
    if was is None or now is None:
        sides = (("old", was), ("new", now))
        return {**told, **{side: _state(state) for side, state in sides if state is not None}}
    old, new = _state(was), _state(now)
    same = [name for name in ("parentId", "payloadType", "tags") if old[name] == new[name]]
    changes = payload_changes(was.payload, now.payload)
    for part, side in ((old, "old"), (new, "new")):
        part["payload"] = {name: change[side] for name, change in changes.items() if side in change}
        for name in (*same, *(() if changes else ("payload",))):
            del part[name]
    moved = {"reordered": True} if was.parent_id == now.parent_id and was.rank != now.rank else {}
    return {**told, "old": old, "new": new, **moved}


def _state(state: State) -> Result:
    return {
        "parentId": state.parent_id,
        "payloadType": state.type,
        "payload": copied(state.payload),
        "tags": sorted(state.tags),
    }


def _commit_json(context: ToolContext, commit: Commit) -> Result:
    return {
        "version": context.workspace.version_at(commit.seq),
        "agent": commit.agent,
        "tool": commit.tool,
        "nodeIds": list(commit.before)[:_NAMED_IDS],
        "nodeCount": len(commit.before),
    }
