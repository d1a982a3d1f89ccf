"""Changing where nodes stand: moving, ordering, copying."""

from __future__ import annotations

from toolgrove.errors import InvalidArgument
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import SETS, WRITES, Family
from toolgrove.tools.order import Order
from toolgrove.tools.schema import ID_LIST, STRING, choice, flag, node_id, text
from toolgrove.tree.footprint import Footprint, of_ancestors, of_children, of_node, of_siblings, of_subtree
from toolgrove.tree.node import Node
from toolgrove.tree.tree import Tree, walk
from toolgrove.types import Arguments, Result

family = Family()


def _rests_on_move(tree: Tree, arguments: Arguments) -> Footprint:
    node_id, parent_id = arguments["nodeId"], arguments["newParentId"]
    return of_node(node_id) | of_siblings(tree, node_id) | of_children(parent_id) | of_ancestors(tree, parent_id)


@family.tool(
    SETS,
    arguments={"nodeId": node_id("The node to move."), "newParentId": node_id("Its new parent.")},
    required=("nodeId", "newParentId"),
    returns={"nodeId": STRING, "oldParentId": STRING, "newParentId": STRING},
    rests_on=_rests_on_move,
    example={"nodeId": "shed", "newParentId": "house"},
)
def move_node(context: ToolContext, arguments: Arguments) -> Result:
    """Move a node, with everything below it, to the end of another parent's children."""
    node, parent = context.tree[arguments["nodeId"]], context.tree[arguments["newParentId"]]
    old = node.parent.id if node.parent is not None else ""
    context.tree.move(node, parent)
    return {"nodeId": node.id, "oldParentId": old, "newParentId": parent.id}


_PLACE = {"nodeId": node_id("The node to place."), "siblingId": node_id("A child of the same parent.")}
_PLACED = {"nodeId": STRING, "siblingId": STRING, "parentId": STRING}


def _rests_on_place(tree: Tree, arguments: Arguments) -> Footprint:
    return of_siblings(tree, arguments["nodeId"]) | of_siblings(tree, arguments["siblingId"])


def _place(context: ToolContext, arguments: Arguments, *, after: bool) -> Result:
    node, sibling = context.tree[arguments["nodeId"]], context.tree[arguments["siblingId"]]
    context.tree.place(node, sibling, after=after)
    return {"nodeId": node.id, "siblingId": sibling.id, "parentId": node.parent.id if node.parent else ""}


@family.tool(
    SETS,
    arguments=_PLACE,
    required=("nodeId", "siblingId"),
    returns=_PLACED,
    rests_on=_rests_on_place,
    example={"nodeId": "living", "siblingId": "kitchen"},
)
def move_before(context: ToolContext, arguments: Arguments) -> Result:
    """Put a node immediately before a sibling."""
    return _place(context, arguments, after=False)


@family.tool(
    SETS,
    arguments=_PLACE,
    required=("nodeId", "siblingId"),
    returns=_PLACED,
    rests_on=_rests_on_place,
    example={"nodeId": "kitchen", "siblingId": "living"},
)
def move_after(context: ToolContext, arguments: Arguments) -> Result:
    """Put a node immediately after a sibling."""
    return _place(context, arguments, after=True)


@family.tool(
    SETS,
    arguments={
        "parentId": node_id("Whose children to sort."),
        "byProp": text("The property to sort by; missing values come last.", minLength=1),
        "direction": choice("Default asc.", "asc", "desc"),
        "stable": flag("Equal children keep their order; they always do."),
    },
    required=("parentId", "byProp"),
    returns={"parentId": STRING, "nodeIds": {**ID_LIST, "description": "The children that changed place."}},
    rests_on=lambda tree, arguments: of_children(arguments["parentId"]),
    example={"parentId": "house", "byProp": "squareFeet", "direction": "desc"},
)
def sort_children(context: ToolContext, arguments: Arguments) -> Result:
    """Sort the children of a node by a property."""
    parent = context.tree[arguments["parentId"]]
    moved = sort_below(context, parent, by=arguments["byProp"], direction=arguments.get("direction"))
    return {"parentId": parent.id, "nodeIds": moved}


def sort_below(context: ToolContext, parent: Node, *, by: str, direction: str | None) -> list[str]:
    """Sort the children of a node; the ids of those that changed place."""
    order = Order({"path": by, "direction": direction}, parent)
    return context.tree.reorder(parent, order.sort(list((parent.children or {}).values())))


def _copy(context: ToolContext, node: Node, parent: Node, *, share: bool) -> Node:
    copy = context.tree.add(parent, node.type, node.payload)
    if share:
        context.tree.share(node, copy)
    context.tree.tag(copy, node.tags)
    return copy


def _rests_on_copy(tree: Tree, arguments: Arguments) -> Footprint:
    source = arguments.get("sourceId")
    ground = of_node(arguments["nodeId"]) if source is None else of_subtree(tree, source)
    return ground | of_children(arguments["targetParentId"])


@family.tool(
    WRITES,
    arguments={
        "sourceId": node_id("The top of the subtree to copy."),
        "targetParentId": node_id("The parent of the copy."),
        "mode": choice(
            "'reference' shares payloads: a change through one node shows in all. 'duplicate' does not.",
            "reference",
            "duplicate",
        ),
    },
    required=("sourceId", "targetParentId", "mode"),
    returns={
        "nodeId": STRING,
        "idMap": {"type": "object", "additionalProperties": STRING, "description": "Old id to new id."},
    },
    rests_on=_rests_on_copy,
    rest="get_subtree of the answered nodeId has the copies in the order of the originals.",
    example={"sourceId": "house", "targetParentId": "property", "mode": "duplicate"},
)
def copy_subtree(context: ToolContext, arguments: Arguments) -> Result:
    """Copy a node and everything below it under a parent, with new ids."""
    source, target = context.tree[arguments["sourceId"]], context.tree[arguments["targetParentId"]]
    copies = copy_below(context, source, target, share=arguments["mode"] == "reference", argument="sourceId")
    return {"nodeId": copies[source.id].id, "idMap": {old: copy.id for old, copy in copies.items()}}


def copy_below(context: ToolContext, source: Node, target: Node, *, share: bool, argument: str) -> dict[str, Node]:
    """Copy a subtree under a parent; the copies by the ids of what they are copies of."""
    # Listed before anything is added: the target may lie inside the source.
    originals = list(walk(source))
    context.limits.check(argument, len(originals), context.limits.copy_nodes, "Copy smaller subtrees.")
    _refuse_root(source)
    copies: dict[str, Node] = {}
    for node in originals:
        above = None if node is source else node.parent
        copies[node.id] = _copy(context, node, target if above is None else copies[above.id], share=share)
    return copies


@family.tool(
    WRITES,
    arguments={"nodeId": node_id("The node to copy."), "targetParentId": node_id("The parent of the copy.")},
    required=("nodeId", "targetParentId"),
    returns={"nodeId": STRING},
    rests_on=_rests_on_copy,
    example={"nodeId": "kitchen", "targetParentId": "house"},
)
def clone_node(context: ToolContext, arguments: Arguments) -> Result:
    """Copy one node, without what is below it, under a parent."""
    node, target = context.tree[arguments["nodeId"]], context.tree[arguments["targetParentId"]]
    _refuse_root(node)
    return {"nodeId": _copy(context, node, target, share=False).id}


def _refuse_root(node: Node) -> None:
    if node.parent is None:
        raise InvalidArgument("The root cannot be copied; copy its children instead.", nodeId=node.id)
