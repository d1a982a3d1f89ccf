"""What happened: taking it back, bringing it back, hearing of it."""

from __future__ import annotations

from toolgrove.errors import Conflict, InvalidArgument
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import READS, WRITES, Family
from toolgrove.tools.schema import COUNT, ID_LIST, PAGING, STRING, listing, record, text
from toolgrove.tree.history import Commit
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 50
_REVERTED = {"tool": STRING, "nodeIds": ID_LIST, "nodeCount": COUNT}


def _revert(context: ToolContext, *, again: bool) -> Result:
    workspace = context.workspace
    reverted = workspace.undo(context.caller, again=again)
    touched = list(dict.fromkeys(node_id for commit in reverted for node_id in commit.before))
    context.move, context.reviving = "redo" if again else "undo", reverted
    return {"tool": reverted[0].tool, "nodeIds": touched[:_NAMED_IDS], "nodeCount": len(touched)}


@family.tool(WRITES, arguments={}, returns=_REVERTED, example={})
def undo(context: ToolContext, arguments: Arguments) -> Result:
    """Take back your own last change of the tree, unless others have built on it since."""
    return _revert(context, again=False)


@family.tool(WRITES, arguments={}, returns=_REVERTED, example={})
def redo(context: ToolContext, arguments: Arguments) -> Result:
    """Bring back what your last undo took back."""
    return _revert(context, again=True)


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


def _commit_json(context: ToolContext, commit: Commit) -> Result:
    return {
        "version": context.workspace.version_at(commit.seq),
        "agent": commit.agent,
        "tool": commit.tool,
        "nodeIds": list(commit.before)[:_NAMED_IDS],
        "nodeCount": len(commit.before),
    }
