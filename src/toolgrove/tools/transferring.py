"""Views and subtrees as documents: out, and back in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from toolgrove.errors import InvalidArgument, NotFound
from toolgrove.tools.answer_size import size
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import DESTROYS, READS, SETS, Family
from toolgrove.tools.schema import COUNT, CUT, ID_LIST, OBJECT, STRING, choice, either, flag, names, node_id, text
from toolgrove.tools.viewing import lens_of, view_root
from toolgrove.tree.document import Incoming, dumps, export, loads, read
from toolgrove.tree.footprint import VIEW
from toolgrove.tree.formats.forms import READS as READS_TEXT
from toolgrove.tree.formats.forms import WRITES
from toolgrove.tree.merge import Merge
from toolgrove.tree.node import Node, name_of
from toolgrove.tree.property_path import PropertyFilter
from toolgrove.tree.render import nested, text_cost
from toolgrove.tree.tree import Tree
from toolgrove.tree.view import ViewChange
from toolgrove.types import Arguments, Result

family = Family()
_NAMED_IDS = 200
Pair = tuple[Mapping[str, Any], Node | None]
_DOCUMENT = either("A document of an export, as text or as an object.", STRING, OBJECT)


@family.tool(
    READS,
    arguments={
        "rootNodeId": node_id("Where the view starts."),
        "includeViewRoot": flag("Put the header in that import_view restores from; true by default."),
        "versionToken": text("Checked if given: a conflict if anything changed since."),
    },
    required=("rootNodeId",),
    returns={"viewJson": STRING, "cut": CUT},
    optional=("cut",),
    example={"rootNodeId": "house"},
)
def export_view(context: ToolContext, arguments: Arguments) -> Result:
    """Your view from a node down as a JSON text: the visible nodes, what is expanded, the filters."""
    root = context.tree[arguments["rootNodeId"]]
    lens = lens_of(context, {})
    header: Result = {"viewRoot": view_root(context, root, lens)} if arguments.get("includeViewRoot", True) else {}
    header["path"] = [node.segment for node in root.ancestry()[1:]]
    flags = _fitting_flags(context, header)
    view, cut = nested(
        root,
        lens,
        max_tokens=context.budget,
        max_nodes=context.limits.view_nodes,
        cost=text_cost,
        taken=size(dumps(header)),
    )
    cut.hint = "Export the view of a node below, or raise maxTokens."
    if size(dumps(view["payload"])) > max(context.room(size(dumps(header))), 0):
        view["payload"] = {}
        cut.payloads += 1
    note, inside = cut.noted(), cut.inside()
    if flags:
        note = {"cut": {**note.get("cut", {"hint": cut.hint}), "left": {"viewRoot.expanded": flags}}}
        inside = {"cut": {**inside.get("cut", {}), "expanded": flags}}
    return {"viewJson": dumps({**inside, **header, "view": view}), **note}


def _fitting_flags(context: ToolContext, header: Result) -> int:
    """Leave out of a header what would take more than half of the answer; how many flags that are."""
    flags: dict[str, bool] = header.get("viewRoot", {}).get("expanded", {})
    room = context.room() // 2
    kept: dict[str, bool] = {}
    for key, is_open in flags.items():
        room -= size(dumps({key: is_open}))
        if room < 0:
            break
        kept[key] = is_open
    if len(kept) < len(flags):
        header["viewRoot"]["expanded"] = kept
    return len(flags) - len(kept)


@family.tool(
    SETS,
    arguments={
        "viewJson": _DOCUMENT,
        "payloadTypes": names("The types that the view may contain; any other is refused."),
        "rootLookupStrategy": choice("How to find the view's root here; nodeId by default.", "nodeId", "path"),
    },
    required=("viewJson", "payloadTypes"),
    returns={"rootNodeId": STRING, "nodeIds": ID_LIST, "ignored": COUNT},
    rests_on=lambda tree, arguments: VIEW,
    example={
        "viewJson": {"viewRoot": {"rootNodeId": "house", "expanded": {"house": True}}},
        "payloadTypes": ["House"],
        "rootLookupStrategy": "nodeId",
    },
)
def import_view(context: ToolContext, arguments: Arguments) -> Result:
    """Restore an exported view onto the nodes that exist here: root, filters, what is expanded. It
    creates no nodes; import_merge does."""
    document = loads(arguments["viewJson"])
    header = _part(document, "viewRoot")
    shown = _part(document, "view")
    by_path = arguments.get("rootLookupStrategy") == "path"
    root = _by_path(context.tree, document, header) if by_path else _by_id(context.tree, header, shown)
    context.limits.check("viewJson", len(_part(header, "expanded")), context.limits.expand_nodes)
    pairs = list(islice(_pairs(shown, root), context.limits.expand_nodes + 1))
    context.limits.check("viewJson", len(pairs), context.limits.expand_nodes, "Export a smaller part of the tree.")
    _refuse_types(arguments["payloadTypes"], pairs, root)
    expanded, ignored = _flags(context.tree, root, header, pairs, by_path=by_path)
    wanted = PropertyFilter(_texts(header, "includedProperties"), _texts(header, "excludedProperties"))
    view = context.view
    change = ViewChange(
        session=view.session,
        expanded=expanded,
        reset=True,
        default_expanded=header.get("defaultExpanded", view.default_expanded) is True,
        view_filter=wanted if header else None,
    )
    context.changes.append(change)
    return {"rootNodeId": root.id, "nodeIds": list(expanded)[:_NAMED_IDS], "ignored": ignored}


def _part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = document.get(name, {})
    if not isinstance(part, dict):
        raise InvalidArgument(f"The document has {name!r} that is not an object.", reason="document")
    return part


def _texts(header: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = header.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidArgument(f"The document's viewRoot has {name!r} that is not a list of texts.", reason="document")
    return tuple(found)


def _by_id(tree: Tree, header: Mapping[str, Any], shown: Mapping[str, Any]) -> Node:
    wanted = header.get("rootNodeId", shown.get("nodeId"))
    if not isinstance(wanted, str):
        raise InvalidArgument("The document names no root: it needs viewRoot.rootNodeId or view.", reason="document")
    return tree[wanted]


def _by_path(tree: Tree, document: Mapping[str, Any], header: Mapping[str, Any]) -> Node:
    path = document.get("path", [part for part in str(header.get("rootNodeId", "")).split("/") if part])
    if not isinstance(path, list):
        raise InvalidArgument("The document has 'path' that is not a list of names.", reason="document")
    node = tree.root
    for segment in path:
        found = [child for child in (node.children or {}).values() if child.segment == segment]
        if len(found) != 1:
            kind = "No node stands" if not found else "More than one node stands"
            raise NotFound(f"{kind} at the path /{'/'.join(map(str, path))}.", reason="path")
        node = found[0]
    return node


def _pairs(shown: Mapping[str, Any], root: Node) -> Iterator[Pair]:
    """The nodes of a document beside the live nodes at the same path."""
    stack: list[tuple[Any, Node | None]] = [(shown, root)] if shown else []
    while stack:
        item, node = stack.pop()
        yield item, node
        children = item.get("children", [])
        if not isinstance(children, list):
            raise InvalidArgument("The document has 'children' that is not a list.", reason="document")
        live: dict[str, Node] = {}
        for one in (node.children or {}).values() if node is not None and children else ():
            live.setdefault(one.segment, one)
        stack.extend((child, live.get(_segment(child))) for child in children)


def _segment(item: Any) -> str:
    if not isinstance(item, dict):
        raise InvalidArgument("The document holds a node that is not an object.", reason="document")
    return name_of(_part(item, "payload")) or str(item.get("nodeId"))


def _refuse_types(allowed: list[str], pairs: Sequence[Pair], root: Node) -> None:
    found = {str(item.get("payloadType")) for item, _ in pairs} | {root.type}
    strange = sorted(found.difference(allowed))
    if strange:
        raise InvalidArgument(
            f"The view contains payload types that payloadTypes does not name: {', '.join(strange)}. "
            "Add them if you expect them.",
            reason="unknown_type",
            payloadTypes=strange,
        )


def _flags(
    tree: Tree, root: Node, header: Mapping[str, Any], pairs: Sequence[Pair], *, by_path: bool
) -> tuple[dict[str, bool], int]:
    wanted: dict[str, Any] = dict(_part(header, "expanded"))
    ignored = 0
    if by_path or not header:
        for item, node in pairs:
            target = node if by_path else tree.nodes.get(str(item.get("nodeId")))
            wanted.pop(str(item.get("nodeId")), None)
            if target is None:
                ignored += 1
            elif isinstance(item.get("isExpanded"), bool):
                wanted[target.id] = item["isExpanded"]
    flags = {
        key: value
        for key, value in wanted.items()
        if isinstance(value, bool) and key in tree and tree[key].is_within(root)
    }
    return flags, ignored + len(wanted) - len(flags)


@family.tool(
    READS,
    arguments={
        "nodeId": node_id("The top of the subtree."),
        "includeViewRoot": flag("Add the header that import_view restores a view from."),
        "format": choice("Other than json (default) is answered as text.", "json", *WRITES),
    },
    required=("nodeId",),
    returns={"json": STRING, "text": STRING, "cut": CUT},
    optional=("json", "text", "cut"),
    example={"nodeId": "house"},
)
def export_subtree(context: ToolContext, arguments: Arguments) -> Result:
    """A node and everything below it as a document. import_merge reads json, csv (properties and tags), markdown and
    opml (names and nesting) back."""
    root = context.tree[arguments["nodeId"]]
    form = arguments.get("format", "json")
    if form != "json":
        writing = import_module("toolgrove.tree.formats.writing")  # only those who want a text pay for its import
        text, cut = writing.write_text(root, form, max_tokens=context.budget)
        return {"text": text, **cut.noted()}
    header: Result = {}
    if arguments.get("includeViewRoot"):
        header["viewRoot"] = view_root(context, root, lens_of(context, {}))
        _fitting_flags(context, header)
    taken = size(dumps(header)) if header else 0
    document, cut = export(root, max_tokens=None if context.budget is None else context.budget - taken // 4)
    return {"json": dumps({**cut.inside(), **header, **document}), **cut.noted()}


@family.tool(
    DESTROYS,
    arguments={
        "json": _DOCUMENT,
        "text": STRING | {"description": "Instead of json."},
        "format": choice("Of text.", *READS_TEXT),
        "payloadType": text("Of new nodes, where text does not say it.", minLength=1),
        "strategy": choice(
            "upsert: update and add; replace: make it exactly so, removing the rest below; skip: only add.",
            "upsert",
            "replace",
            "skip",
        ),
        "matchBy": choice("How nodes are recognised; nodeId by default.", "nodeId", "path"),
        "parentNodeId": node_id("Where a new top node goes; the root by default."),
    },
    required=("strategy",),
    returns={
        "created": ID_LIST,
        "updated": ID_LIST,
        "removed": ID_LIST,
        "createdCount": COUNT,
        "updatedCount": COUNT,
        "removedCount": COUNT,
        "skippedCount": COUNT,
        "idMap": {**OBJECT, "description": "Ids of the document that were taken, and what they became."},
    },
    rests_on=None,
    example={
        "json": {
            "nodeId": "house",
            "payloadType": "House",
            "payload": {"status": "sold"},
            "children": [{"payloadType": "Room", "payload": {"name": "Attic"}}],
        },
        "strategy": "upsert",
        "matchBy": "nodeId",
    },
)
def import_merge(context: ToolContext, arguments: Arguments) -> Result:
    """Merge a document into the tree: json, nested {nodeId?, payloadType, payload, tags?, children} or flat
    {items: [{nodeId, parentId, …}]}; or text. All of it, or nothing if any part is refused."""
    incoming = _incoming(context, arguments)
    merge = Merge(
        context.tree,
        context.types,
        strategy=arguments["strategy"],
        match_by=arguments.get("matchBy", "nodeId"),
        parent=context.tree[arguments.get("parentNodeId", context.tree.root.id)],
    )
    done = merge.run(incoming)
    context.looked_at = merge.looked_at
    return {
        "created": done.created[:_NAMED_IDS],
        "updated": done.updated[:_NAMED_IDS],
        "removed": done.removed[:_NAMED_IDS],
        "createdCount": len(done.created),
        "updatedCount": len(done.updated),
        "removedCount": len(done.removed),
        "skippedCount": done.skipped,
        "idMap": done.id_map,
    }


def _incoming(context: ToolContext, arguments: Arguments) -> list[Incoming]:
    """The nodes of a call, which come as json or as text."""
    limit = context.limits.import_nodes
    if ("json" in arguments) == ("text" in arguments):
        raise InvalidArgument(
            "Send either json, or text with its format (markdown, opml or csv).", reason="document", path="json"
        )
    if "json" in arguments:
        return read(arguments["json"], limit=limit)
    if "format" not in arguments:
        raise InvalidArgument(
            "Say in which format the text is: markdown, opml or csv.", reason="document", path="format"
        )
    found: list[Incoming] = import_module("toolgrove.tree.formats.reading").read_text(
        arguments["text"], arguments["format"], payload_type=arguments.get("payloadType"), limit=limit
    )
    return found
