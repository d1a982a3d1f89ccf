"""How long a call may take, by a rough count of the nodes that it looks at; long ones run beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from toolgrove.tree.node import Node
from toolgrove.tree.tree import walk
from toolgrove.tree.workspace import CURRENT, Workspace
from toolgrove.types import Arguments, Caller

LONG = 20_000
"""Microseconds that others can wait for; what takes longer must not stop them."""
BESIDE = frozenset(
    (
        "expand_node",
        "collapse_node",
        "toggle_node",
        "expand_all",
        "collapse_all",
        "set_expansion_recursive",
        "set_filters",
        "import_view",
        "bookmark",
        "remove_bookmark",
        "snapshot_create",
        "snapshot_delete",
    )
)
"""The tools that change something beside the tree, and no node of it."""
_TEXT_OF_A_NODE = 60
Effort = Callable[[Workspace, Caller, Arguments], float]


def effort(tool: str, workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    """About how many microseconds a call takes; where it is far too many, counting ends early."""
    known = EFFORTS.get(tool)
    return 0 if known is None else known(workspace, caller, arguments)


def _all(each: float) -> Effort:
    """For a tool that may look at every node, with the microseconds that one takes."""
    return lambda workspace, caller, arguments: len(workspace.tree) * each


def _below(each: float, *names: str) -> Effort:
    """For a tool that looks at some subtrees."""

    def effort(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
        tops = [workspace.tree.nodes.get(arguments.get(name, "")) for name in names]
        return sum(_count(top, int(LONG / each) + 1) for top in tops if top is not None) * each

    return effort


def _count(top: Node, enough: int) -> int:
    return sum(1 for _ in islice(walk(top), enough))


def _children(each: float, name: str, *, of_parent: bool) -> Effort:
    """For a tool that looks at all the children of one node."""

    def effort(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
        node = workspace.tree.nodes.get(arguments[name])
        parent = node.parent if of_parent and node is not None else node
        return 0 if parent is None else parent.children_count * each

    return effort


def _look(name: str) -> Effort:
    whole = _below(9, name)

    def effort(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
        if "asOf" in arguments:
            return len(workspace.tree) * 3 + workspace.history.size_since(workspace.history.floor)
        if {"pageSize", "pageToken", "paging"} & arguments.keys():
            return 0
        # A budget bounds what is shown; what is left out is only counted.
        tokens: int = arguments.get("maxTokens", caller.answer_tokens)
        return min(len(workspace.tree) * 0.1 + tokens * 0.4, whole(workspace, caller, arguments))

    return effort


def _search(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    return len(workspace.tree) * (8 if "sortBy" in arguments else 1)


def _tagged(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    return len(workspace.tree.tagged.get(arguments["tag"], ())) * 4


def _since(each: float, *names: str) -> Effort:
    """For a tool that goes back to snapshots."""

    def effort(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
        known = [workspace.snapshots.get(arguments[name]) for name in names if arguments[name] != CURRENT]
        moments = [snapshot.seq for snapshot in known if snapshot is not None]
        return workspace.history.size_since(min(moments)) * each if moments else 0

    return effort


def _branch(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    return _since(35, "snapshotId")(workspace, caller, arguments) + _below(10, "nodeId")(workspace, caller, arguments)


def _batch(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    total = 0.0
    for change in arguments["changes"]:
        total += 30 + _change(workspace, change)
        if total > LONG:
            break
    return total


def _change(workspace: Workspace, change: Mapping[str, Any]) -> float:
    nodes, at = workspace.tree.nodes, change.get("at")
    if isinstance(at, dict):
        return len(nodes) * 4 if "query" in at else 0
    ids = at if isinstance(at, list) else [at]
    tops = [nodes[one] for one in ids if one in nodes]
    near = [nodes[one] for one in (change.get("before"), change.get("after")) if isinstance(one, str) and one in nodes]
    wide = sum(one.parent.children_count for one in near if one.parent is not None) * 0.5
    if change["op"] in ("copy", "remove"):
        return sum(_count(top, LONG // 25) for top in tops) * 25
    if change["op"] == "sort":
        return sum(top.children_count for top in tops) * 4
    return len(tops) * 10 + wide


def _taking_back(again: bool) -> Effort:
    return lambda workspace, caller, arguments: workspace.undo_size(caller, again=again) * 25


def _merge(workspace: Workspace, caller: Caller, arguments: Arguments) -> float:
    document: Any = arguments.get("json", arguments.get("text", ""))
    if isinstance(document, str):
        return len(document) / _TEXT_OF_A_NODE * 20
    items = document.get("items")
    return (len(items) if isinstance(items, list) else _nested(document)) * 20


def _nested(document: Mapping[str, Any]) -> int:
    found, stack = 0, [document]
    while stack and found * 20 <= LONG:
        node = stack.pop()
        found += 1
        children = node.get("children") if isinstance(node, dict) else None
        if isinstance(children, list):
            stack.extend(children)
    return found


EFFORTS: dict[str, Effort] = {
    "get_subtree": _look("nodeId"),
    "get_view": _look("rootNodeId"),
    "search": _all(1),
    "search_advanced": _search,
    "select_nodes": _all(3),
    "query_by_tag": _tagged,
    "aggregate": _all(6),
    "describe_tree": _all(10),
    "list_tags": _below(1, "rootNodeId"),
    "validate_tree": _all(10),
    "diff_subtree": _below(8, "aId", "bId"),
    "snapshot_diff": _since(16, "a", "b"),
    "export_subtree": _below(11, "nodeId"),
    "export_view": _below(9, "rootNodeId"),
    "expand_all": _below(2, "rootNodeId"),
    "collapse_all": _below(2, "rootNodeId"),
    "set_expansion_recursive": _below(2, "nodeId"),
    "import_view": lambda workspace, caller, arguments: 10 * len(str(arguments["viewJson"])) / _TEXT_OF_A_NODE,
    "import_merge": _merge,
    "apply_changes": _batch,
    "copy_subtree": _below(25, "sourceId"),
    "remove_node": _below(5, "nodeId"),
    "update_nodes": _all(3),
    "sort_children": _children(4, "parentId", of_parent=False),
    "move_before": _children(0.4, "nodeId", of_parent=True),
    "move_after": _children(0.4, "nodeId", of_parent=True),
    "snapshot_restore": _since(35, "snapshotId"),
    "restore_subtree": _branch,
    "undo": _taking_back(again=False),
    "redo": _taking_back(again=True),
}
