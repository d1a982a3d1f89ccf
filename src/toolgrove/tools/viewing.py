"""The session's view: looking at it, opening and closing nodes, setting filters."""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Callable, Mapping

from toolgrove.tools.answer_size import size
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import READS, SETS, WRITES, Effect, Family, Run
from toolgrove.tools.schema import (
    COUNT,
    CUT,
    DEPTH_LIMIT,
    FILTERS,
    FORMAT,
    ID_LIST,
    ITEM,
    STRING,
    VIEW_PAGING,
    VIEW_ROOT,
    Schema,
    choice,
    flag,
    listing,
    names,
    node_id,
    tree_of,
    whole,
)
from toolgrove.tools.tree_answer import tree_answer
from toolgrove.tree.footprint import VIEW, Footprint, of_node
from toolgrove.tree.node import Node
from toolgrove.tree.property_path import PropertyFilter
from toolgrove.tree.render import nested
from toolgrove.tree.tree import Tree, walk
from toolgrove.tree.view import Lens, ViewChange
from toolgrove.types import Arguments, Result

family = Family()
_ECHO = 50


def view_root(context: ToolContext, root: Node, lens: Lens) -> Result:
    """The header that import_view restores a view from."""
    flags = lens.expanded or {}
    return {
        "rootNodeId": root.id,
        "defaultExpanded": lens.default_expanded,
        "includedProperties": list(lens.filter.included),
        "excludedProperties": list(lens.filter.excluded),
        "expanded": {key: flags[key] for key in flags if key in context.tree and context.tree[key].is_within(root)},
    }


def lens_of(context: ToolContext, arguments: Arguments) -> Lens:
    """The caller's view as a lens; what this call says itself wins."""
    view = context.view
    return Lens(
        filter=context.filter(arguments, view.view_filter),
        depth_limit=arguments.get("depthLimit"),
        expanded=view.expanded,
        default_expanded=arguments.get("defaultExpanded", view.default_expanded),
    )


@family.tool(
    READS,
    arguments={
        "rootNodeId": node_id("Where the view starts."),
        "includeViewRoot": flag("Add the viewRoot header that import_view can restore."),
        "defaultExpanded": flag("Whether nodes never expanded or collapsed count as open, for this read."),
        **FILTERS,
        "depthLimit": DEPTH_LIMIT,
        **VIEW_PAGING,
        "format": FORMAT,
    },
    required=("rootNodeId",),
    returns={
        "view": tree_of(expandable=True),
        "outline": STRING,
        "items": listing(ITEM),
        "nextPageToken": STRING,
        "cut": CUT,
        "viewRoot": VIEW_ROOT,
    },
    optional=("view", "outline", "items", "nextPageToken", "cut", "viewRoot"),
    example={"rootNodeId": "root", "defaultExpanded": True, "format": "outline", "maxTokens": 300},
)
def get_view(context: ToolContext, arguments: Arguments) -> Result:
    """What your session sees from a node down: collapsed nodes show their childrenCount only. Nested, or
    flat items when paged; keep it small with depthLimit, maxTokens and format: outline."""
    root = context.tree[arguments["rootNodeId"]]
    lens = lens_of(context, arguments)
    header: Result = {"viewRoot": view_root(context, root, lens)} if arguments.get("includeViewRoot") else {}
    return tree_answer(context, arguments, root, lens, word="view", header=header)


def _rests_on_view(tree: Tree, arguments: Arguments) -> Footprint:
    return VIEW | of_node(arguments.get("nodeId") or arguments["rootNodeId"])


_EXPANDED: dict[str, dict[str, object]] = {
    "nodeId": STRING,
    "nodeIds": {**ID_LIST, "description": f"The nodes that changed, at most {_ECHO} of them."},
    "changedCount": COUNT,
    "isExpanded": {"type": "boolean"},
    "view": tree_of(expandable=True),
    "cut": CUT,
}
_ONE = {"nodeId": node_id("The node.")}
_ALL = {"rootNodeId": node_id("The top of the subtree.")}


def _opens(
    effect: Effect, needed: dict[str, Schema], more: dict[str, Schema] | None = None, *, example: dict[str, object]
) -> Callable[[Run], Run]:
    """A tool that opens or closes nodes; they differ in what they take."""
    return family.tool(
        effect,
        arguments={**needed, **(more or {})},
        required=tuple(needed),
        returns=_EXPANDED,
        optional=("cut",),
        rests_on=_rests_on_view,
        example=example,
    )


def _set(context: ToolContext, root: Node, expanded: bool, changed: Mapping[str, bool]) -> Result:
    view = context.view
    if changed:
        context.changes.append(ViewChange(session=view.session, expanded=changed))
    lens = Lens(
        filter=view.view_filter, expanded=ChainMap(dict(changed), view.expanded), default_expanded=view.default_expanded
    )
    shown, cut = nested(root, lens, max_tokens=context.budget, max_nodes=_ECHO, taken=size(list(changed)[:_ECHO]))
    return {
        "nodeId": root.id,
        "nodeIds": list(changed)[:_ECHO],
        "changedCount": len(changed),
        "isExpanded": expanded,
        "view": shown,
        **cut.noted(),
    }


def _set_one(context: ToolContext, node: Node, expanded: bool) -> Result:
    changed = {} if context.view.expanded.get(node.id) is expanded else {node.id: expanded}
    return _set(context, node, expanded, changed)


def _set_below(context: ToolContext, root: Node, expanded: bool, max_depth: int | None) -> Result:
    limit = context.limits.expand_nodes
    # What is said explicitly counts, even where it is the default: a read may come with another one.
    flags = context.view.expanded
    changed: dict[str, bool] = {}
    queue = deque([(root, 0)])
    seen = 0
    while queue:
        node, depth = queue.popleft()
        seen += 1
        if seen > limit:
            hint = "Limit it with set_expansion_recursive and maxDepth, or read with defaultExpanded: true."
            context.limits.check("rootNodeId", sum(1 for _ in walk(root)), limit, hint)
        if flags.get(node.id) is not expanded:
            changed[node.id] = expanded
        if node.children and (max_depth is None or depth < max_depth):
            queue.extend((child, depth + 1) for child in node.children.values())
    return _set(context, root, expanded, changed)


@_opens(SETS, _ONE, example={"nodeId": "house"})
def expand_node(context: ToolContext, arguments: Arguments) -> Result:
    """Open a node in your view, so that its children show."""
    return _set_one(context, context.tree[arguments["nodeId"]], True)


@_opens(SETS, _ONE, example={"nodeId": "house"})
def collapse_node(context: ToolContext, arguments: Arguments) -> Result:
    """Close a node in your view; it stays visible, what is below it does not."""
    return _set_one(context, context.tree[arguments["nodeId"]], False)


@_opens(WRITES, _ONE, example={"nodeId": "house"})
def toggle_node(context: ToolContext, arguments: Arguments) -> Result:
    """Open a closed node in your view, or close an open one."""
    node = context.tree[arguments["nodeId"]]
    return _set_one(context, node, not context.view.is_expanded(node.id))


@_opens(SETS, _ALL, example={"rootNodeId": "house"})
def expand_all(context: ToolContext, arguments: Arguments) -> Result:
    """Open a node and everything below it in your view."""
    return _set_below(context, context.tree[arguments["rootNodeId"]], True, None)


@_opens(SETS, _ALL, example={"rootNodeId": "root"})
def collapse_all(context: ToolContext, arguments: Arguments) -> Result:
    """Close a node and everything below it in your view."""
    return _set_below(context, context.tree[arguments["rootNodeId"]], False, None)


@_opens(
    SETS,
    {**_ONE, "expanded": flag("true opens, false closes.")},
    {"maxDepth": whole("Levels below the node; all of them by default.")},
    example={"nodeId": "root", "expanded": True, "maxDepth": 1},
)
def set_expansion_recursive(context: ToolContext, arguments: Arguments) -> Result:
    """Open or close a node and what is below it in your view, down to a depth."""
    root = context.tree[arguments["nodeId"]]
    return _set_below(context, root, arguments["expanded"], arguments.get("maxDepth"))


@family.tool(
    SETS,
    arguments={
        "scope": choice(
            "Which later reads: get_node ('node'), views and lists ('view'), or both ('all').", "all", "view", "node"
        ),
        "included": names("Only these property paths. Empty: all."),
        "excluded": names("Without these property paths."),
    },
    required=("scope",),
    returns={"scope": STRING, "included": ID_LIST, "excluded": ID_LIST},
    rests_on=lambda tree, arguments: VIEW,
    example={"scope": "view", "included": ["name", "status"], "excluded": []},
)
def set_filters(context: ToolContext, arguments: Arguments) -> Result:
    """Preset the property filters for later reads of your session; a read's own filters win. Empty lists
    take the preset away."""
    included, excluded = arguments.get("included", []), arguments.get("excluded", [])
    wanted = PropertyFilter(tuple(included), tuple(excluded))
    scope, view = arguments["scope"], context.view
    node_filter = wanted if scope in ("all", "node") else view.node_filter
    view_filter = wanted if scope in ("all", "view") else view.view_filter
    if (node_filter, view_filter) != (view.node_filter, view.view_filter):
        context.changes.append(ViewChange(session=view.session, node_filter=node_filter, view_filter=view_filter))
    return {"scope": scope, "included": included, "excluded": excluded}
