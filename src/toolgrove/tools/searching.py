"""Finding nodes: by property, by predicate groups, by the selection DSL, by tag."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from toolgrove.tools.conditions import CONDITIONS, FILTER, compile_predicates, hinted, no_match, why_nothing
from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tools.declaration import READS, Family
from toolgrove.tools.order import Order
from toolgrove.tools.querying import advice, select
from toolgrove.tools.schema import (
    COUNT,
    FILTERS,
    HIT,
    PAGING,
    SEARCH,
    STRING,
    choice,
    either,
    flag,
    listing,
    node_id,
    record,
    text,
)
from toolgrove.tree.aggregate import OPS, Aggregation, read_measures
from toolgrove.tree.node import Node
from toolgrove.tree.position import position
from toolgrove.tree.predicate import Predicate
from toolgrove.tree.render import breadcrumb, node_json
from toolgrove.tree.view import Lens
from toolgrove.types import Arguments, Result

family = Family()
_HITS = {"items": listing(HIT), "nextPageToken": STRING, "count": COUNT, "hint": STRING}
_CRUMBS = 32
_MEASURES = 20


def hits(
    context: ToolContext, arguments: Arguments, found: Iterator[Node], place: Callable[[Node], Any]
) -> tuple[list[Result], dict[str, Any]]:
    """The next nodes of a search as it wants them shown, and the token for those after them."""
    shown = context.filter(arguments, context.view.view_filter)
    fields = arguments.get("fields", "all")
    with_path = arguments.get("path", fields == "all")

    def show(node: Node) -> Result:
        if fields == "ids":
            hit: Result = {"nodeId": node.id}
        elif fields == "names":
            name = node.name
            hit = {"nodeId": node.id, **({} if name is None else {"name": name}), "payloadType": node.type}
        else:
            hit = node_json(node, shown)
        return {**hit, **_way(node)} if with_path else hit

    return context.page(arguments, found, place, show)


def _way(node: Node) -> Result:
    """The way from the root to a node; of a long one, the beginning and the end."""
    crumbs = breadcrumb(node)
    if len(crumbs) <= _CRUMBS:
        return {"path": crumbs}
    return {"path": [crumbs[0], *crumbs[1 - _CRUMBS :]], "pathCut": len(crumbs) - _CRUMBS}


def counted(arguments: Arguments, nodes: Iterable[Node]) -> Result:
    """How many nodes there are in all, where the call asks for it."""
    return {"count": sum(1 for _ in nodes)} if arguments.get("count") else {}


def _found(
    context: ToolContext,
    arguments: Arguments,
    items: list[Result],
    more: dict[str, Any],
    root: Node,
    test: Predicate,
    conditions: Any,
) -> Result:
    """A page of hits; an empty answer says why, where that can be known."""
    if items or "pageToken" in arguments:
        return {"items": items, **more}
    if test(root):
        hint = {"hint": f"Only {root.id!r} itself matches; a search looks below it. get_node reads it."}
    else:
        hint = no_match(context, conditions)
    return {"items": items, **more, **hint}


def _below(context: ToolContext, root: Node, visible_only: bool, after: list[Any] | None) -> Iterator[Node]:
    view = context.view
    lens = Lens(expanded=view.expanded, default_expanded=view.default_expanded) if visible_only else Lens()
    return (node for node, _ in lens.walk(root, after or []))


def _searched(context: ToolContext, arguments: Arguments, root: Node, conditions: Any, test: Predicate) -> Result:
    after = ranks_of(context.place(arguments))
    visible = arguments.get("visibleOnly", False)

    def found(after: list[Any] | None) -> Iterator[Node]:
        return (node for node in _below(context, root, visible, after) if test(node))

    items, more = hits(context, arguments, found(after), lambda node: place_of(node, root))
    return _found(context, arguments, items, {**more, **counted(arguments, found(None))}, root, test, conditions)


@family.tool(
    READS,
    arguments={
        "rootNodeId": node_id("Search below this node."),
        "filters": listing(FILTER, "All of them must hold."),
        "visibleOnly": flag("Only what your view shows."),
        **FILTERS,
        **SEARCH,
        **PAGING,
    },
    required=("rootNodeId", "filters"),
    returns=_HITS,
    optional=("nextPageToken", "count", "hint"),
    example={"rootNodeId": "root", "filters": [{"path": "name", "op": "contains", "value": "room"}]},
)
def search(context: ToolContext, arguments: Arguments) -> Result:
    """Find nodes below a root whose properties equal or contain a value; collapsed ones too. Each hit
    carries its path."""
    root = context.tree[arguments["rootNodeId"]]
    conditions = arguments["filters"]
    return _searched(context, arguments, root, conditions, compile_predicates(conditions, "filters"))


@family.tool(
    READS,
    arguments={
        "rootId": node_id("Search below this node."),
        "predicates": either("{path, op, value}, {and: […]} or {or: […]}, or a list that must all hold.", *CONDITIONS),
        "sortBy": record(
            {"path": text("Property to sort by."), "direction": choice("Default asc.", "asc", "desc")},
            "path",
            description="Missing and null values come last either way.",
        ),
        "visibleOnly": flag("Only what your view shows."),
        **FILTERS,
        **SEARCH,
        **PAGING,
    },
    required=("rootId", "predicates"),
    returns=_HITS,
    optional=("nextPageToken", "count", "hint"),
    example={
        "rootId": "root",
        "predicates": {
            "or": [
                {"path": "squareFeet", "op": "between", "value": [100, 200]},
                {"path": "status", "op": "eq", "value": "done"},
            ]
        },
        "sortBy": {"path": "squareFeet", "direction": "desc"},
    },
)
def search_advanced(context: ToolContext, arguments: Arguments) -> Result:
    """Find nodes below a root by nested and/or groups of eq, contains, gt, lt, between; sorted if you like."""
    root = context.tree[arguments["rootId"]]
    test = compile_predicates(arguments["predicates"], "predicates")
    if "sortBy" not in arguments:
        return _searched(context, arguments, root, arguments["predicates"], test)
    order = Order(arguments["sortBy"], root)

    def sort() -> list[Node]:
        candidates = _below(context, root, arguments.get("visibleOnly", False), None)
        return order.sort([node for node in candidates if test(node)])

    found = context.ordered(arguments, sort)
    place = context.place(arguments)
    start = 0 if place is None else bisect_left(found, True, key=lambda node: order.is_after(node, place))
    items, more = hits(context, arguments, islice(found, start, None), order.place)
    return _found(context, arguments, items, {**more, **counted(arguments, found)}, root, test, arguments["predicates"])


@family.tool(
    READS,
    arguments={
        "queryDsl": text("For example: //*[squareFeet > 100 and not status = done]", minLength=1),
        **FILTERS,
        **SEARCH,
        **PAGING,
    },
    required=("queryDsl",),
    returns=_HITS,
    optional=("nextPageToken", "count", "hint"),
    example={"queryDsl": "//House/*[squareFeet > 100] | //*[@tag = urgent]"},
)
def select_nodes(context: ToolContext, arguments: Arguments) -> Result:
    """Select nodes by a compact query. A bare condition (name contains Kitchen and squareFeet > 100) or
    a path with conditions (/Property/House//*[price between 10 and 20]). '/' child, '//' descendant, '*' any
    name, #id a node by id; @id @type @name @depth @tag @childCount @index; = != > >= < <= contains startswith
    endswith between in exists missing; and or not ( ); parent() ancestor() child() descendant(); '|' union.
    Quote values of several words."""
    selection = select(context.tree, arguments["queryDsl"])
    after = ranks_of(context.place(arguments))
    items, more = hits(context, arguments, selection.nodes(after), lambda node: place_of(node, selection.root))
    hint = {} if items or after is not None else why_nothing(selection)
    return {"items": items, **more, **counted(arguments, selection.nodes()), **hint}


@family.tool(
    READS,
    arguments={"tag": text("The tag.", minLength=1), **FILTERS, **SEARCH, **PAGING},
    required=("tag",),
    returns=_HITS,
    optional=("nextPageToken", "count", "hint"),
    example={"tag": "urgent"},
)
def query_by_tag(context: ToolContext, arguments: Arguments) -> Result:
    """Find the nodes that carry a tag, in tree order."""
    tree, root = context.tree, context.tree.root

    def tagged() -> list[tuple[list[Any], str]]:
        keys = tree.tagged.get(arguments["tag"], ())
        return sorted(((position(tree[key], root), key) for key in keys), key=lambda pair: pair[0])

    placed = context.ordered(arguments, tagged)
    after = ranks_of(context.place(arguments))
    start = 0 if after is None else bisect_right(placed, after, key=lambda pair: pair[0])
    found = (tree[key] for _, key in islice(placed, start, None))
    items, more = hits(context, arguments, found, lambda node: place_of(node, root))
    hint = {} if items or after is not None else hinted(advice().no_tag(arguments["tag"], tree))
    return {"items": items, **more, **({"count": len(placed)} if arguments.get("count") else {}), **hint}


@family.tool(
    READS,
    arguments={
        "rootNodeId": node_id("Below this node; the whole tree by default."),
        "query": text("A DSL query; all nodes without it.", minLength=1),
        "groupBy": text("Property path or @attribute.", minLength=1),
        "measures": listing(
            record({"op": choice("What to compute.", *OPS), "path": text("Of which property.", minLength=1)}, "op"),
            "Default: count.",
            maxItems=_MEASURES,
        ),
    },
    returns={"groups": listing({"type": "object"}), "groupCount": COUNT, "nodeCount": COUNT, "hint": STRING},
    optional=("hint",),
    rest="The largest groups are shown; narrow it with query or rootNodeId, or raise maxTokens.",
    example={"groupBy": "status", "measures": [{"op": "count"}, {"op": "avg", "path": "squareFeet"}]},
)
def aggregate(context: ToolContext, arguments: Arguments) -> Result:
    """Count and compute instead of reading: groups [{key, count, "sum(path)": …}], the largest first; key is null where
    there is no value."""
    root = context.tree[arguments.get("rootNodeId", context.tree.root.id)]
    aggregation = Aggregation(
        group_by=arguments.get("groupBy"),
        measures=read_measures(arguments.get("measures", [])),
        shown=context.view.view_filter,
    )
    selection = select(context.tree, arguments["query"]) if "query" in arguments else None
    nodes = _below(context, root, False, None) if selection is None else _within(selection.nodes(), root)
    groups, total = aggregation.run(nodes)
    hint = {} if total or selection is None else why_nothing(selection)
    return {"groups": groups, "groupCount": len(groups), "nodeCount": total, **hint}


def _within(nodes: Iterator[Node], root: Node) -> Iterator[Node]:
    """Those of some nodes that are below a root."""
    if root.parent is None:
        return (node for node in nodes if node is not root)
    return (node for node in nodes if node is not root and node.is_within(root))
