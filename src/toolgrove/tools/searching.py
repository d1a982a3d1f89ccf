"""Finding nodes: by property, by predicate groups, by the selection DSL, by tag."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from toolgrove.errors import InvalidArgument, SchemaMismatch, closest
from toolgrove.notation.json_value import order_key
from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tools.declaration import READS, Family
from toolgrove.tools.schema import (
    COUNT,
    FILTERS,
    HIT,
    PAGING,
    SEARCH,
    STRING,
    Schema,
    anything,
    choice,
    either,
    flag,
    listing,
    node_id,
    record,
    text,
)
from toolgrove.tree.aggregate import OPS, Aggregation, read_measures
from toolgrove.tree.dsl import Selection
from toolgrove.tree.dsl.advice import Clue, advice, no_tag, on_clues
from toolgrove.tree.dsl.syntax import Property
from toolgrove.tree.node import Node
from toolgrove.tree.position import position
from toolgrove.tree.predicate import Predicate, compile_predicate, every
from toolgrove.tree.property_path import MISSING, Many, finder
from toolgrove.tree.render import breadcrumb, node_json
from toolgrove.tree.view import Lens
from toolgrove.types import Arguments, Result

family = Family()
_HITS = {"items": listing(HIT), "nextPageToken": STRING, "count": COUNT, "hint": STRING}
_CRUMBS = 32
_SIGNS = {"eq": "=", "gt": ">", "lt": "<"}
ONLY_THE_START = "Only '{0}' itself matches, and a condition looks at what is below it. #{0} selects the node itself."
_GROUPS = 16
_MEASURES = 20


def _predicate(*ops: str, value: str) -> Schema:
    return record(
        {
            "path": text("Dotted property path.", minLength=1),
            "op": choice("How to compare.", *ops),
            "value": anything(value),
        },
        "path",
        "op",
        "value",
    )


FILTER = _predicate("eq", "contains", value="What to compare with; contains reads numbers as text.")
PREDICATE = _predicate("eq", "contains", "gt", "lt", "between", value="What to compare with; between: [low, high].")
CONDITION = record(
    {
        **PREDICATE["properties"],
        "and": listing({"type": "object"}, "Conditions like this one that must all hold.", minItems=1),
        "or": listing({"type": "object"}, "Conditions like this one of which one must hold.", minItems=1),
    },
    description=f"{{path, op, value}}, or a group: {{and: […]}} or {{or: […]}}, at most {_GROUPS} deep.",
)
CONDITIONS = listing(CONDITION), {"type": "object", "description": "One such condition."}
_COMPARES = ("path", "op", "value")
_SHAPES = 'write {"path": …, "op": …, "value": …}, {"and": […]} or {"or": […]}'


def compile_predicates(conditions: Any, argument: str) -> Predicate:
    """One predicate or a list of them that must all hold."""
    all_of = conditions if isinstance(conditions, list) else [conditions]
    places = [f"{argument}[{at}]" if isinstance(conditions, list) else argument for at in range(len(all_of))]
    for one, where in zip(all_of, places, strict=True):
        _check(one, where, argument, _GROUPS)
    parts = [compile_predicate(one, where) for one, where in zip(all_of, places, strict=True)]
    return every(parts) if parts else lambda node: True


def _check(condition: Any, where: str, argument: str, room: int) -> None:
    """See that a condition is one of the shapes there are; the schema says so of the outermost alone."""
    if room == 0:
        raise InvalidArgument(f"{argument!r} nests more than {_GROUPS} groups.", reason="predicate")
    if not isinstance(condition, dict):
        raise SchemaMismatch(path=where, problem=f"a condition is an object: {_SHAPES}")
    for word in ("and", "or"):
        if word in condition:
            parts = condition[word]
            if len(condition) > 1 or not isinstance(parts, list) or not parts:
                raise SchemaMismatch(
                    path=where, problem=f"a group is {word!r} with a list of conditions alone: {_SHAPES}"
                )
            for at, part in enumerate(parts):
                _check(part, f"{where}.{word}[{at}]", argument, room - 1)
            return
    if condition.keys() != set(_COMPARES):
        odd = next((key for key in condition if key not in _COMPARES), None)
        missing = next((key for key in _COMPARES if key not in condition), None)
        what = f"{odd!r} is not known" if odd is not None else f"{missing!r} is missing"
        raise SchemaMismatch(path=where, problem=f"{what}: {_SHAPES}")
    path, ops = condition["path"], PREDICATE["properties"]["op"]["enum"]
    if not isinstance(path, str) or not path:
        raise SchemaMismatch(path=f"{where}.path", problem="write a dotted property path")
    if condition["op"] not in ops:
        near = closest(str(condition["op"]), ops)
        hint = f"Did you mean {near!r}?" if near else None
        raise SchemaMismatch(path=f"{where}.op", problem=f"write one of {', '.join(ops)}", hint=hint)


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


def no_match(context: ToolContext, conditions: Any) -> Result:
    """The hint of conditions that nothing meets, where there is one."""
    return _hint(on_clues(_clues(conditions), context.tree, in_dsl=False))


def _clues(conditions: Any) -> Iterator[Clue]:
    for one in conditions if isinstance(conditions, list) else [conditions]:
        for word in ("and", "or"):
            if word in one:
                yield from _clues(one[word])
        if "path" in one:
            value = one["value"]
            values = tuple(value) if one["op"] == "between" else (value,)
            yield Clue(Property(one["path"]), _SIGNS.get(one["op"], one["op"]), values)


def only_the_start(selection: Selection) -> Result:
    """The hint of a query that finds nothing: only the node where it starts would match, or what no node has."""
    if selection.matches_start():
        return {"hint": ONLY_THE_START.format(selection.root.id)}
    return _hint(advice(selection.query, selection.tree))


def _hint(text: str | None) -> Result:
    return {} if text is None else {"hint": text}


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


class Order:
    """Sorting by a property, and finding a place in the sorted list again."""

    def __init__(self, sort_by: dict[str, Any], root: Node) -> None:
        self.find = finder(sort_by["path"])
        self.descending = sort_by.get("direction") == "desc"
        self.root = root

    def key(self, node: Node) -> tuple[int, Any] | None:
        """What a node sorts by; None comes last."""
        found = self.find(node.payload)
        value = found[0] if type(found) is Many else found
        return None if value is MISSING or value is None else order_key(value)

    def sort(self, nodes: list[Node]) -> list[Node]:
        """The nodes in order; equal ones stay as they were, absent values come last."""
        keyed = [(self.key(node), node) for node in nodes]
        present = [(key, node) for key, node in keyed if key is not None]
        present.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [node for _, node in present] + [node for key, node in keyed if key is None]

    def place(self, node: Node) -> list[Any]:
        """Where a node stands, as a token carries it."""
        key = self.key(node)
        return [None if key is None else list(key), place_of(node, self.root)]

    def is_after(self, node: Node, place: list[Any]) -> bool:
        """Whether a node comes after a place."""
        key, mark = self.key(node), None if place[0] is None else tuple(place[0])
        if key == mark:
            return position(node, self.root) > (ranks_of(place[1]) or [])
        if key is None or mark is None:
            return key is None
        return key < mark if self.descending else key > mark


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
    selection = Selection(context.tree, arguments["queryDsl"])
    after = ranks_of(context.place(arguments))
    items, more = hits(context, arguments, selection.nodes(after), lambda node: place_of(node, selection.root))
    hint = {} if items or after is not None else only_the_start(selection)
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
    hint = {} if items or after is not None else _hint(no_tag(arguments["tag"], tree))
    return {"items": items, **more, **({"count": len(placed)} if arguments.get("count") else {}), **hint}


@family.tool(
    READS,
    arguments={
        "rootNodeId": node_id("Below this node; the whole tree by default."),
        "query": text("Only nodes that this DSL query selects.", minLength=1),
        "groupBy": text("A property path, or @type, @tag, @depth …; without it all is one group.", minLength=1),
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
    """Count and compute instead of reading: groups [{key, count, "sum(path)": …}], the largest first. key is null where
    there is no value; sum and avg look at numbers alone."""
    root = context.tree[arguments.get("rootNodeId", context.tree.root.id)]
    aggregation = Aggregation(
        group_by=arguments.get("groupBy"),
        measures=read_measures(arguments.get("measures", [])),
        shown=context.view.view_filter,
    )
    selection = Selection(context.tree, arguments["query"]) if "query" in arguments else None
    nodes = _below(context, root, False, None) if selection is None else _within(selection.nodes(), root)
    groups, total = aggregation.run(nodes)
    hint = {} if total or selection is None else only_the_start(selection)
    return {"groups": groups, "groupCount": len(groups), "nodeCount": total, **hint}


def _within(nodes: Iterator[Node], root: Node) -> Iterator[Node]:
    """Those of some nodes that are below a root."""
    if root.parent is None:
        return (node for node in nodes if node is not root)
    return (node for node in nodes if node is not root and node.is_within(root))
