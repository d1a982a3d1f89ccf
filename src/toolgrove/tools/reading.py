"""Reading nodes where they stand: one, its children, its way, its subtree."""

from __future__ import annotations

from itertools import islice
from typing import Any

from toolgrove.errors import BadPageToken, NotFound
from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tools.declaration import READS, Family
from toolgrove.tools.schema import (
    COUNT,
    CRUMBS,
    CUT,
    DEPTH_LIMIT,
    EXCLUDED,
    FILTERS,
    FORMAT,
    ID_LIST,
    INCLUDED,
    ITEM,
    LIMIT,
    NODE,
    OBJECT,
    PAGE_TOKEN,
    PAGING,
    STRING,
    VIEW_PAGING,
    listing,
    names,
    node_id,
    record,
    text,
    tree_of,
)
from toolgrove.tools.tree_answer import tree_answer
from toolgrove.tree.description import describe
from toolgrove.tree.node import Node
from toolgrove.tree.position import resume
from toolgrove.tree.render import breadcrumb, node_json
from toolgrove.tree.view import Lens
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 50


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node to read."), **FILTERS},
    required=("nodeId",),
    returns={
        **NODE["properties"],
        "sharedWith": {**ID_LIST, "description": f"Others that hold the same payload, at most {_NAMED_IDS} of them."},
    },
    optional=("tags", "payloadGroup", "sharedWith"),
    example={"nodeId": "kitchen", "includedProperties": ["name"]},
)
def get_node(context: ToolContext, arguments: Arguments) -> Result:
    """Read one node: its parent, type, payload, tags and number of children, and with whom it shares its payload."""
    node = context.tree[arguments["nodeId"]]
    shown = node_json(node, context.filter(arguments, context.view.node_filter))
    if not node.is_shared:
        return shown
    others = (holder for holder in node.holders or () if holder != node.id)
    return {**shown, "sharedWith": list(islice(others, _NAMED_IDS))}


@family.tool(
    READS,
    arguments={"nodeId": node_id("The parent."), **FILTERS, **PAGING},
    required=("nodeId",),
    returns={"items": listing(NODE), "nextPageToken": STRING},
    optional=("nextPageToken",),
    example={"nodeId": "house", "limit": 2},
)
def list_children(context: ToolContext, arguments: Arguments) -> Result:
    """List the children of a node in order, a page at a time."""
    parent = context.tree[arguments["nodeId"]]
    after = ranks_of(context.place(arguments))
    children = (parent.children or {}).values() if after is None else resume(parent, after)[1][0]
    shown = context.filter(arguments, context.view.view_filter)
    items, more = context.page(
        arguments, iter(children), lambda node: place_of(node, parent), lambda node: node_json(node, shown)
    )
    return {"items": items, **more}


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node whose way to find."), "pageToken": PAGE_TOKEN},
    required=("nodeId",),
    returns={"path": CRUMBS, "nextPageToken": STRING},
    optional=("nextPageToken",),
    example={"nodeId": "kitchen"},
)
def get_path(context: ToolContext, arguments: Arguments) -> Result:
    """The breadcrumb from the root to a node: ids, names where there are any, depths."""
    crumbs = breadcrumb(context.tree[arguments["nodeId"]])
    last = context.place(arguments)
    start = 0 if last is None else 1 + next((at for at, crumb in enumerate(crumbs) if crumb["nodeId"] == last), -1)
    if last is not None and start == 0:
        raise BadPageToken
    path, more = context.page(
        arguments, islice(crumbs, start, None), lambda crumb: crumb["nodeId"], lambda crumb: crumb, most=len(crumbs)
    )
    return {"path": path, **more}


@family.tool(
    READS,
    arguments={"nodeIds": names("The nodes to find the common ancestor of.")},
    required=("nodeIds",),
    returns={"nodeId": {"type": ["string", "null"]}},
    example={"nodeIds": ["kitchen", "shed"]},
)
def get_common_ancestor(context: ToolContext, arguments: Arguments) -> Result:
    """The nearest node that is, or is above, all the given nodes; null for an empty list."""
    wanted = arguments["nodeIds"]
    context.limits.check("nodeIds", len(wanted), context.limits.node_ids)
    shared: list[Any] | None = None
    for one in wanted:
        chain = context.tree[one].ancestry()
        if shared is None:
            shared = chain
        else:
            length = next(
                (at for at, pair in enumerate(zip(shared, chain, strict=False)) if pair[0] is not pair[1]), None
            )
            shared = shared[: min(len(shared), len(chain)) if length is None else length]
    return {"nodeId": shared[-1].id if shared else None}


@family.tool(
    READS,
    arguments={
        "nodeId": node_id("The root of the subtree."),
        "depthLimit": DEPTH_LIMIT,
        "filters": record(
            {
                "includedProperties": INCLUDED,
                "excludedProperties": EXCLUDED,
                "included": INCLUDED,
                "excluded": EXCLUDED,
            },
            description="Property filters; or give them beside the other arguments.",
        ),
        "paging": record(
            {"pageSize": LIMIT, "pageToken": PAGE_TOKEN}, description="Paging; or give it beside the other arguments."
        ),
        **FILTERS,
        **VIEW_PAGING,
        "format": FORMAT,
        "asOf": text("A snapshotId or a version: the subtree as it was then.", minLength=1),
    },
    required=("nodeId",),
    returns={
        "subtree": tree_of(expandable=False),
        "outline": STRING,
        "items": listing(ITEM),
        "nextPageToken": STRING,
        "cut": CUT,
    },
    optional=("subtree", "outline", "items", "nextPageToken", "cut"),
    example={"nodeId": "house", "depthLimit": 1, "maxTokens": 400},
)
def get_subtree(context: ToolContext, arguments: Arguments) -> Result:
    """A node and all below it, whatever is expanded: nested, or flat items when paged. Cut it with
    depthLimit and maxTokens."""
    flat = {**arguments, **arguments.get("paging", {})}
    filters = arguments.get("filters", {})
    for short, long in (("included", "includedProperties"), ("excluded", "excludedProperties")):
        if short in filters or long in filters:
            flat[long] = filters.get(long, filters.get(short))
    root = _as_of(context, flat["nodeId"], flat["asOf"]) if "asOf" in flat else context.tree[flat["nodeId"]]
    lens = Lens(filter=context.filter(flat, context.view.view_filter), depth_limit=flat.get("depthLimit"))
    return tree_answer(context, flat, root, lens, word="subtree", header={})


@family.tool(
    READS,
    arguments={"rootNodeId": node_id("The top of what to describe; the whole tree by default.")},
    returns={
        "rootNodeId": STRING,
        "nodes": COUNT,
        "depth": COUNT,
        "types": listing(OBJECT),
        "properties": listing(OBJECT),
        "tags": listing(OBJECT),
    },
    rest="The most frequent are shown; describe a node below, or raise maxTokens.",
    example={"rootNodeId": "property"},
)
def describe_tree(context: ToolContext, arguments: Arguments) -> Result:
    """What there is, before you read it: how many nodes and levels, their types, property paths with kinds of values,
    and tags, each with counts."""
    root = context.tree[arguments.get("rootNodeId", context.tree.root.id)]
    return describe(root, context.view.view_filter)


def _as_of(context: ToolContext, node_id: str, moment: str) -> Node:
    node = context.workspace.moment(moment).subtree(node_id)
    if node is None:
        raise NotFound(f"There was no node {node_id!r} at {moment!r}.", nodeId=node_id)
    return node
