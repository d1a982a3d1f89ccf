"""Changing what the tree holds: adding, updating and removing nodes."""

from __future__ import annotations

from typing import Any

from toolgrove.errors import GroveError, OutsideWriteRoot
from toolgrove.notation.json_value import MAX_NESTING, detached
from toolgrove.tools.batch import CHANGES, Batch, tools_needed
from toolgrove.tools.conditions import CONDITIONS, ONLY_THE_START, compile_predicates, no_match, why_nothing
from toolgrove.tools.context import ToolContext, ids
from toolgrove.tools.declaration import DESTROYS, SETS, WRITES, Family
from toolgrove.tools.patch import Patch
from toolgrove.tools.querying import select
from toolgrove.tools.schema import (
    COUNT,
    ID_LIST,
    OBJECT,
    PAYLOAD,
    STRING,
    anything,
    choice,
    either,
    flag,
    listing,
    names,
    node_id,
    record,
    text,
)
from toolgrove.tree.footprint import of_children, of_node, of_siblings, of_subtree
from toolgrove.tree.node import Node
from toolgrove.tree.tree import walk
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 200
_OUTCOME = 36


_PATCH = {
    "type": "object",
    "description": "Properties and their new values; others stay. A name is an exact key, else a dotted path.",
}
_REMOVE = names("Properties to take away, by the same paths.")


@family.tool(
    WRITES,
    arguments={
        "parentNodeId": node_id("The parent of the new node."),
        "payloadType": text("A type name; list_payload_types shows the registered ones.", minLength=1),
        "payloadProps": PAYLOAD,
    },
    required=("parentNodeId", "payloadType"),
    returns={"nodeId": STRING},
    rests_on=lambda tree, arguments: of_children(arguments["parentNodeId"]),
    example={"parentNodeId": "house", "payloadType": "Room", "payloadProps": {"name": "Study"}},
)
def add_child(context: ToolContext, arguments: Arguments) -> Result:
    """Add a node as the last child of a parent; the answer has its id."""
    parent = context.tree[arguments["parentNodeId"]]
    payload = detached(arguments.get("payloadProps", {}), "payloadProps", MAX_NESTING)
    context.types.check(arguments["payloadType"], payload, payload)
    return {"nodeId": context.tree.add(parent, arguments["payloadType"], payload).id}


_UPDATED = {"nodeId": STRING, "nodeIds": ID_LIST, "payload": OBJECT}


def _update(context: ToolContext, node: Node, patch: Patch) -> Result:
    payload, removed = patch.applied(context, node), patch.removed(node.payload)
    changed = [] if payload is None else context.tree.write(node, payload)
    told = {"nodeId": node.id, "nodeIds": ids(changed), "payload": patch.shown(node.payload)}
    return {**told, "removed": removed} if patch.remove else told


@family.tool(
    SETS,
    arguments={
        "nodeId": node_id("The node to change."),
        "propertyName": text("An exact key, else a dotted path, such as meta.owner.", minLength=1),
        "newValue": anything("Any JSON value."),
    },
    required=("nodeId", "propertyName", "newValue"),
    returns=_UPDATED,
    rests_on=lambda tree, arguments: of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "propertyName": "status", "newValue": "done"},
)
def update_payload_property(context: ToolContext, arguments: Arguments) -> Result:
    """Set one property of a node's payload. NodeId, Children, Parent and PayloadType of a self-payload
    node cannot be set."""
    patch = Patch({arguments["propertyName"]: arguments["newValue"]})
    return _update(context, context.tree[arguments["nodeId"]], patch)


@family.tool(
    SETS,
    arguments={"nodeId": node_id("The node to change."), "patch": _PATCH, "remove": _REMOVE},
    required=("nodeId",),
    returns={**_UPDATED, "removed": ID_LIST},
    optional=("removed",),
    rests_on=lambda tree, arguments: of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "patch": {"status": "done", "price": 12.5}},
)
def update_payload(context: ToolContext, arguments: Arguments) -> Result:
    """Set and remove several properties of a node's payload at once: all of them, or none if one is refused."""
    return _update(context, context.tree[arguments["nodeId"]], Patch.read(context, arguments))


@family.tool(
    SETS,
    arguments={
        "filter": either("A DSL query as in select_nodes, or conditions as in search_advanced.", STRING, *CONDITIONS),
        "patch": _PATCH,
        "remove": _REMOVE,
    },
    required=("filter",),
    returns={
        "outcomes": listing(
            record(
                {
                    "nodeId": STRING,
                    "status": choice("What became of it.", "updated", "unchanged", "failed"),
                    "error": OBJECT,
                },
                "nodeId",
                "status",
            )
        ),
        "updated": COUNT,
        "failed": COUNT,
        "hint": STRING,
    },
    optional=("hint",),
    rest="Failed ones come first; select_nodes with the same filter lists the nodes.",
    example={"filter": "status = open", "patch": {"status": "done"}},
)
def update_nodes(context: ToolContext, arguments: Arguments) -> Result:
    """Set and remove properties on every node that a filter matches. Not atomic: each node succeeds or fails by
    itself, and the answer says which; those that succeed are one change, and one undo takes them back."""
    patch = Patch.read(context, arguments)
    nodes = _matching(context, arguments["filter"])
    hint = f"Narrow the filter to at most {context.limits.update_nodes} nodes."
    context.limits.check("filter", len(nodes), context.limits.update_nodes, hint)
    changed: set[str] = set()
    outcomes = [_update_one(context, node, patch, changed) for node in nodes]
    counts = [outcome["status"] for outcome in outcomes]
    if len(outcomes) * _OUTCOME > context.room():
        outcomes.sort(key=lambda outcome: outcome["status"] != "failed")
    note = _as_tags(patch) if outcomes else _only_the_root(context, arguments["filter"])
    return {"outcomes": outcomes, "updated": counts.count("updated"), "failed": counts.count("failed"), **note}


def _as_tags(patch: Patch) -> Result:
    """The hint of a patch that takes a property for the tags."""
    named = any(path.casefold() == "tags" for path in (*patch.values, *patch.remove))
    hint = "This is a payload property called 'tags', which no tag query sees; tag_node or {op: tag} sets tags."
    return {"hint": hint} if named else {}


def _matching(context: ToolContext, filter: Any) -> list[Node]:
    if isinstance(filter, str):
        return list(select(context.tree, filter).nodes())
    test = compile_predicates(filter, "filter")
    return [node for node in walk(context.tree.root) if node is not context.tree.root and test(node)]


def _only_the_root(context: ToolContext, filter: Any) -> Result:
    root = context.tree.root
    if isinstance(filter, str):
        return why_nothing(select(context.tree, filter))
    only = compile_predicates(filter, "filter")(root)
    return {"hint": ONLY_THE_START.format(root.id)} if only else no_match(context, filter)


def _update_one(context: ToolContext, node: Node, patch: Patch, changed: set[str]) -> dict[str, Any]:
    """Set the properties of one node; `changed` are those that the call has changed, by themselves or by sharing."""
    try:
        _check_write_root(context, node)
        payload = patch.applied(context, node)
        for holder in (node.holders or ()) if payload is not None else ():
            _check_write_root(context, context.tree[holder])
    except GroveError as error:
        return {"nodeId": node.id, "status": "failed", **error.to_json()}
    if payload is not None:
        changed.update(ids(context.tree.write(node, payload)))
    return {"nodeId": node.id, "status": "updated" if node.id in changed else "unchanged"}


def _check_write_root(context: ToolContext, node: Node) -> None:
    caller = context.caller
    for agent, root in caller.write_roots:
        if all(one.id != root for one in node.ancestry()):
            raise OutsideWriteRoot(root=root, node_id=node.id, of=agent if agent != caller.agent else None)


@family.tool(
    DESTROYS,
    arguments={
        "changes": CHANGES,
        "atomic": flag("If one fails, nothing happens (default). false: the others stay, and 'failed' tells the rest."),
    },
    required=("changes",),
    returns={
        "counts": {"type": "object", "additionalProperties": COUNT, "description": "Nodes by op."},
        "refs": {"type": "object", "additionalProperties": STRING},
        "failed": listing(record({"index": COUNT, "error": OBJECT}, "index", "error")),
        "hint": STRING,
    },
    optional=("failed", "hint"),
    stands_for=tools_needed,
    example={
        "changes": [
            {"op": "add", "parentId": "house", "payloadType": "Floor", "payload": {"name": "Upper"}, "ref": "upper"},
            {"op": "move", "at": {"query": "@type = Room"}, "parentId": {"ref": "upper"}},
            {"op": "tag", "at": {"query": "status = open"}, "add": ["urgent"]},
            {"op": "set", "at": ["kitchen", "living"], "path": "meta.checked", "value": True},
        ]
    },
)
def apply_changes(context: ToolContext, arguments: Arguments) -> Result:
    """Make many changes in one call: one version, one undo. Each change, its query included, sees those before it.
    An op needs the tool that does it alone (add_child, update_payload, move_node, tag_node, copy_subtree,
    sort_children, remove_node)."""
    return Batch(context).run(arguments["changes"], atomic=arguments.get("atomic", True))


@family.tool(
    DESTROYS,
    arguments={"nodeId": node_id("The node to remove.")},
    required=("nodeId",),
    returns={
        "nodeId": STRING,
        "nodeIds": {**ID_LIST, "description": f"What was removed, at most {_NAMED_IDS} of them."},
        "removedCount": COUNT,
    },
    rests_on=lambda tree, arguments: of_siblings(tree, arguments["nodeId"]) | of_subtree(tree, arguments["nodeId"]),
    example={"nodeId": "shed"},
)
def remove_node(context: ToolContext, arguments: Arguments) -> Result:
    """Remove a node and everything below it, with tags and bookmarks; undo brings it back."""
    node = context.tree[arguments["nodeId"]]
    gone = context.tree.remove(node)
    return {"nodeId": node.id, "nodeIds": gone[:_NAMED_IDS], "removedCount": len(gone)}
