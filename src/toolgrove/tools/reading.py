"""Reading nodes where they stand: one, its children, its way, its subtree."""

from __future__ import annotations

from typing import Any

from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tools.declaration import READS, Family
from toolgrove.tools.schema import (
    CRUMBS,
    CUT,
    DEPTH_LIMIT,
    EXCLUDED,
    FILTERS,
    FORMAT,
    INCLUDED,
    ITEM,
    LIMIT,
    MAX_TOKENS,
    NODE,
    PAGE_TOKEN,
    PAGING,
    STRING,
    VIEW_PAGING,
    listing,
    names,
    node_id,
    record,
    tree_of,
)
from toolgrove.tree.position import resume
from toolgrove.tree.render import breadcrumb, nested, node_json, outline
from toolgrove.tree.view import Lens
from toolgrove.types import Arguments, Result

family = Family()


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node to read."), **FILTERS},
    required=("nodeId",),
    returns=NODE["properties"],
    example={"nodeId": "kitchen", "includedProperties": ["name"]},
)
def get_node(context: ToolContext, arguments: Arguments) -> Result:
    """Read one node: its parent, type, payload and number of children."""
    view = context.workspace.view(context.caller)
    return node_json(context.tree[arguments["nodeId"]], context.filter(arguments, view.node_filter))


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
    nodes, more = context.page(arguments, iter(children), lambda node: place_of(node, parent))
    shown = context.filter(arguments, context.view.view_filter)
    return {"items": [node_json(node, shown) for node in nodes], **more}


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node whose way to find.")},
    required=("nodeId",),
    returns={"path": CRUMBS},
    example={"nodeId": "kitchen"},
)
def get_path(context: ToolContext, arguments: Arguments) -> Result:
    """The breadcrumb from the root to a node: ids, names where there are any, depths."""
    return {"path": breadcrumb(context.tree[arguments["nodeId"]])}


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
            description="Property filters; the same can stand beside the other arguments.",
        ),
        "paging": record(
            {"pageSize": LIMIT, "pageToken": PAGE_TOKEN},
            description="Paging; the same can stand beside the other arguments.",
        ),
        **FILTERS,
        **VIEW_PAGING,
        "maxTokens": MAX_TOKENS,
        "format": FORMAT,
    },
    required=("nodeId",),
    returns={
        "subtree": {"$ref": "#/$defs/node"},
        "outline": STRING,
        "items": listing(ITEM),
        "nextPageToken": STRING,
        "cut": CUT,
    },
    optional=("subtree", "outline", "items", "nextPageToken", "cut"),
    defs={"node": tree_of(expandable=False)},
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
    root = context.tree[flat["nodeId"]]
    lens = Lens(filter=context.filter(flat, context.view.view_filter), depth_limit=flat.get("depthLimit"))
    if "pageSize" in flat or "pageToken" in flat:
        after = ranks_of(context.place(flat))
        found, more = context.page(flat, lens.walk(root, after), lambda pair: place_of(pair[0], root))
        return {"items": [{**node_json(node, lens.filter), "depth": depth} for node, depth in found], **more}
    as_outline = flat.get("format") == "outline"
    shown, cut = nested(
        root, lens, max_tokens=flat.get("maxTokens"), max_nodes=context.limits.view_nodes, as_outline=as_outline
    )
    result: Result = {"outline": outline(shown)} if as_outline else {"subtree": shown}
    return {**result, "cut": cut.to_json()} if cut.children else result
