"""Changing what the tree holds: adding, updating and removing nodes."""

from __future__ import annotations

from typing import Any

from toolgrove.errors import Forbidden, GroveError
from toolgrove.tools.declaration import DESTROYS, SETS, WRITES, Family
from toolgrove.tools.desk import Desk, ids
from toolgrove.tools.schema import COUNT, ID_LIST, OBJECT, PAYLOAD, STRING, choice, listing, node_id, record, text
from toolgrove.tools.searching import GROUPS, compile_predicates
from toolgrove.tree.dsl import Selection
from toolgrove.tree.footprint import of_children, of_node, of_siblings, of_subtree
from toolgrove.tree.json_value import MAX_NESTING, copied, detached, identical
from toolgrove.tree.node import Node, Payload
from toolgrove.tree.tree import walk
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 200


def write(desk: Desk, node: Node, patch: Payload) -> list[Node]:
    """Set some properties of a node, and of every node that shares its payload."""
    payload = {**node.payload, **patch}
    desk.types.check(node.type, payload, patch, node.id)
    same = all(key in node.payload and identical(node.payload[key], value) for key, value in patch.items())
    return [] if same else desk.tree.write(node, payload)


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
def add_child(desk: Desk, arguments: Arguments) -> Result:
    """Add a node as the last child of a parent; the answer has its id."""
    parent = desk.tree[arguments["parentNodeId"]]
    payload = detached(arguments.get("payloadProps", {}), "payloadProps", MAX_NESTING)
    desk.types.check(arguments["payloadType"], payload, payload)
    return {"nodeId": desk.tree.add(parent, arguments["payloadType"], payload).id}


_UPDATED = {"nodeId": STRING, "nodeIds": ID_LIST, "payload": OBJECT}


def _update(desk: Desk, node: Node, patch: Payload) -> Result:
    changed = write(desk, node, detached(patch, "patch", MAX_NESTING))
    return {"nodeId": node.id, "nodeIds": ids(changed), "payload": {key: copied(node.payload[key]) for key in patch}}


@family.tool(
    SETS,
    arguments={
        "nodeId": node_id("The node to change."),
        "propertyName": text("The property, literally: dots are part of the name.", minLength=1),
        "newValue": {"description": "Any JSON value."},
    },
    required=("nodeId", "propertyName", "newValue"),
    returns=_UPDATED,
    rests_on=lambda tree, arguments: of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "propertyName": "status", "newValue": "done"},
)
def update_payload_property(desk: Desk, arguments: Arguments) -> Result:
    """Set one property of a node's payload. NodeId, Children, Parent and PayloadType of a self-payload
    node cannot be set."""
    return _update(desk, desk.tree[arguments["nodeId"]], {arguments["propertyName"]: arguments["newValue"]})


@family.tool(
    SETS,
    arguments={
        "nodeId": node_id("The node to change."),
        "patch": {"type": "object", "description": "Properties and their new values; others stay."},
    },
    required=("nodeId", "patch"),
    returns=_UPDATED,
    rests_on=lambda tree, arguments: of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "patch": {"status": "done", "price": 12.5}},
)
def update_payload(desk: Desk, arguments: Arguments) -> Result:
    """Set several properties of a node's payload at once: all of them, or none if one is refused."""
    desk.limits.check("patch", len(arguments["patch"]), desk.limits.patch)
    return _update(desk, desk.tree[arguments["nodeId"]], arguments["patch"])


@family.tool(
    SETS,
    arguments={
        "filter": {
            "description": "A DSL query as in select_nodes, or predicates as in search_advanced.",
            "anyOf": [STRING, {"$ref": "#/$defs/predicate"}, listing({"$ref": "#/$defs/predicate"})],
        },
        "patch": {"type": "object", "description": "Properties and their new values."},
    },
    required=("filter", "patch"),
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
    },
    argument_defs=GROUPS,
    example={"filter": "status = open", "patch": {"status": "done"}},
)
def update_nodes(desk: Desk, arguments: Arguments) -> Result:
    """Set properties on every node that a filter matches. Not atomic: each node succeeds or fails by
    itself, and the answer tells for each."""
    desk.limits.check("patch", len(arguments["patch"]), desk.limits.patch)
    patch = detached(arguments["patch"], "patch", MAX_NESTING)
    nodes = _matching(desk, arguments["filter"])
    hint = f"Narrow the filter to at most {desk.limits.update_nodes} nodes."
    desk.limits.check("filter", len(nodes), desk.limits.update_nodes, hint)
    outcomes = [_update_one(desk, node, patch) for node in nodes]
    counts = [outcome["status"] for outcome in outcomes]
    return {"outcomes": outcomes, "updated": counts.count("updated"), "failed": counts.count("failed")}


def _matching(desk: Desk, form: Any) -> list[Node]:
    if isinstance(form, str):
        return list(Selection(desk.tree, form).nodes())
    test = compile_predicates(form, "filter")
    return [node for node in walk(desk.tree.root) if node is not desk.tree.root and test(node)]


def _update_one(desk: Desk, node: Node, patch: Payload) -> dict[str, Any]:
    try:
        _check_write_root(desk, node)
        changed = write(desk, node, copied(patch))
        desk.commit()
    except GroveError as error:
        if not desk.dry_run:
            desk.tree.rollback()
        return {"nodeId": node.id, "status": "failed", **error.to_json()}
    return {"nodeId": node.id, "status": "updated" if changed else "unchanged"}


def _check_write_root(desk: Desk, node: Node) -> None:
    limit = desk.caller.write_root
    if limit is not None and all(one.id != limit for one in node.ancestry()):
        raise Forbidden(f"{node.id!r} lies outside {limit!r}, below which you may write.", reason="write_root")


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
def remove_node(desk: Desk, arguments: Arguments) -> Result:
    """Remove a node and everything below it, with tags and bookmarks; undo brings it back."""
    node = desk.tree[arguments["nodeId"]]
    gone = desk.tree.remove(node)
    return {"nodeId": node.id, "nodeIds": gone[:_NAMED_IDS], "removedCount": len(gone)}
