"""Many changes as one: each sees those before it, and happens whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolgrove.errors import BatchTooLarge, GroveError, InvalidArgument, NotFound, SchemaMismatch, closest
from toolgrove.notation.json_value import MAX_NESTING, detached
from toolgrove.tools.arranging import copy_below, sort_below
from toolgrove.tools.conditions import why_nothing
from toolgrove.tools.context import ToolContext
from toolgrove.tools.patch import Patch
from toolgrove.tools.querying import select
from toolgrove.tools.schema import (
    ID_LIST,
    OBJECT,
    STRING,
    Schema,
    anything,
    choice,
    either,
    listing,
    record,
    text,
    whole,
)
from toolgrove.tree.node import Node
from toolgrove.tree.tree import walk
from toolgrove.types import Result

MOST = 1_000
Change = Mapping[str, Any]
_HINTS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Op:
    """One kind of change: the tool that does the same alone, and what it is told."""

    tool: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()


_PLACE = ("parentId", "before", "after", "index")
OPS: Mapping[str, Op] = {
    "add": Op(tool="add_child", needs=("payloadType",), takes=(*_PLACE, "payload", "tags", "ref")),
    "set": Op(tool="update_payload", needs=("at", "path", "value")),
    "unset": Op(tool="update_payload", needs=("at", "path")),
    "move": Op(tool="move_node", needs=("at",), takes=_PLACE),
    "tag": Op(tool="tag_node", needs=("at",), takes=("add", "remove")),
    "copy": Op(tool="copy_subtree", needs=("at", "parentId", "mode")),
    "sort": Op(tool="sort_children", needs=("at", "by"), takes=("direction",)),
    "remove": Op(tool="remove_node", needs=("at",)),
}
_ID = {"type": "string", "minLength": 1}
_NODE: Schema = {"anyOf": [_ID, record({"ref": STRING}, "ref")]}
CHANGES = listing(
    record(
        {
            "op": choice("What to do.", *OPS),
            "at": either("Which nodes.", _ID, ID_LIST, record({"query": STRING, "ref": STRING})),
            "parentId": _NODE,
            "before": _NODE,
            "after": _NODE,
            "index": whole("Place among the children; last if there are fewer."),
            "payloadType": _ID,
            "payload": OBJECT,
            "tags": ID_LIST,
            "ref": text("A name for the new node, for later changes.", minLength=1),
            "path": text("As update_payload.", minLength=1),
            "value": anything("Any JSON."),
            "add": ID_LIST,
            "remove": ID_LIST,
            "mode": {"type": "string", "enum": ["reference", "duplicate"]},
            "by": _ID,
            "direction": {"type": "string", "enum": ["asc", "desc"]},
        },
        "op",
    ),
    f"At most {MOST}. add: parentId, payloadType, payload?, tags?, ref?, before|after|index?; set: at, path, value; "
    "unset: at, path; move: at, parentId|before|after|index; tag: at, add?, remove?; copy: at, parentId, mode; "
    "sort: at, by, direction?; remove: at. at: an id, ids, {query: DSL} or {ref}; parentId, before, after: id, {ref}.",
    minItems=1,
)


def tools_needed(arguments: Any) -> dict[str, int]:
    """The tools that do alone what the changes of a call do, each with the first change that needs it."""
    needed: dict[str, int] = {}
    changes = arguments.get("changes") if isinstance(arguments, dict) else None
    for index, change in enumerate(changes if isinstance(changes, list) else ()):
        name = change.get("op") if isinstance(change, dict) else None
        op = OPS.get(name) if isinstance(name, str) else None
        if op is not None:
            needed.setdefault(op.tool, index)
            if name == "add" and change.get("tags"):
                needed.setdefault("tag_node", index)
    return needed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spot:
    """Where nodes go: last under a parent, at an index, or beside a sibling."""

    parent: Node
    index: int | None = None
    sibling: Node | None = None
    after: bool = False

    @property
    def is_last(self) -> bool:
        return self.index is None and self.sibling is None


class Batch:
    """The changes of one call, and what became of them."""

    def __init__(self, context: ToolContext) -> None:
        self._context, self._tree = context, context.tree
        self._runs: Mapping[str, Callable[[Change], int]] = {
            "add": self._add,
            "set": self._set,
            "unset": self._set,
            "move": self._move,
            "tag": self._tag,
            "copy": self._copy,
            "sort": self._sort,
            "remove": self._remove,
        }
        self._counts: dict[str, int] = {}
        self._refs: dict[str, str] = {}
        self._hints: list[str] = []
        self._covered = 0
        self._new = ""

    def run(self, changes: Sequence[Change], *, atomic: bool) -> Result:
        """Make the changes; the first that fails ends an atomic batch, in another one it is told."""
        self._context.limits.check("changes", len(changes), MOST)
        failed: list[Result] = []
        for index, change in enumerate(changes):
            try:
                self._make(index, change)
            except GroveError as error:
                error.facts["index"] = index
                error.message = f"changes[{index}] ({change['op']}): {error.message}"
                if atomic or _is_of_the_whole(error):
                    error.message += " The whole batch was left undone; correct this change and send it again."
                    raise
                failed.append({"index": index, **error.to_json()})
        told: Result = {"counts": self._counts, "refs": self._refs}
        if not atomic:
            told["failed"] = failed
        return {**told, "hint": " ".join(self._hints)} if self._hints else told

    def _make(self, index: int, change: Change) -> None:
        name = change["op"]
        _check(change, OPS[name])
        with self._tree.step():
            count = self._runs[name](change)
            self._context.workspace.check_boundary(self._context.caller)
        self._counts[name] = self._counts.get(name, 0) + count
        if "ref" in change:
            self._refs[change["ref"]] = self._new
        at = change.get("at")
        if name == "set" and change["path"].casefold() == "tags" and len(self._hints) < _HINTS:
            self._hints.append(f"changes[{index}] sets a payload property called 'tags'; op tag sets tags.")
        if count == 0 and isinstance(at, dict) and "query" in at and len(self._hints) < _HINTS:
            start = why_nothing(select(self._tree, at["query"])).get("hint")
            self._hints.append(f"changes[{index}]: no node matches {at['query']!r}." + (f" {start}" if start else ""))

    # Finding ----------------------------------------------------------------------------------------

    def _one(self, given: str | Mapping[str, str]) -> Node:
        return self._tree[given] if isinstance(given, str) else self._added(given["ref"])

    def _added(self, ref: str) -> Node:
        if ref not in self._refs:
            near = closest(ref, self._refs)
            raise NotFound(
                f"No change before this one adds a node with the ref {ref!r}."
                + (f" Did you mean {near!r}?" if near else " Give the add its ref, and put it before this change."),
                reason="ref",
            )
        return self._tree[self._refs[ref]]

    def _nodes(self, at: Any) -> list[Node]:
        """The nodes that a change is about, each once, all found before anything of it happens."""
        if isinstance(at, str):
            nodes = [self._tree[at]]
        elif isinstance(at, list):
            nodes = [self._tree[node_id] for node_id in dict.fromkeys(at)]
        elif at.keys() == {"ref"}:
            nodes = [self._added(at["ref"])]
        elif at.keys() == {"query"}:
            room = self._context.limits.change_nodes - self._covered
            nodes = list(islice(select(self._tree, at["query"]).nodes(), room + 1))
        else:
            raise SchemaMismatch(path="at", problem="write an id, a list of ids, {query: …} or {ref: …}")
        self._cover(len(nodes))
        return nodes

    def _cover(self, count: int) -> None:
        self._covered += count
        self._context.limits.check(_WHOLE, self._covered, self._context.limits.change_nodes, "Send several batches.")

    def _spot(self, change: Change, nodes: Sequence[Node]) -> _Spot:
        places = [name for name in ("before", "after", "index") if name in change]
        parent = self._one(change["parentId"]) if "parentId" in change else None
        if len(places) > 1:
            raise SchemaMismatch(path=places[1], problem=f"write {places[0]!r} or {places[1]!r}, not both")
        if places in (["before"], ["after"]):
            sibling = self._one(change[places[0]])
            above = sibling.parent
            if above is None or (parent is not None and parent is not above):
                where = f"is no child of {parent.id!r}" if parent is not None else "has no siblings"
                raise InvalidArgument(
                    f"{sibling.id!r} {where}; name a child of the parent you mean.", nodeId=sibling.id
                )
            if sibling in nodes:
                raise InvalidArgument(f"{sibling.id!r} cannot be placed beside itself.", nodeId=sibling.id)
            return _Spot(parent=above, sibling=sibling, after=places == ["after"])
        if parent is None and places:
            parents = {node.parent for node in nodes}
            parent = parents.pop() if len(parents) == 1 else None
        if parent is None:
            if not nodes and "at" in change:
                return _Spot(parent=self._tree.root)  # a query that matches nothing moves nothing
            raise SchemaMismatch(path="parentId", problem="is missing: say where, by parentId, before or after")
        return _Spot(parent=parent, index=change.get("index"))

    # Changing ---------------------------------------------------------------------------------------

    def _add(self, change: Change) -> int:
        spot = self._spot(change, ())
        if change.get("ref") in self._refs:
            raise InvalidArgument(f"Two changes have the ref {change['ref']!r}; give each its own.", reason="ref")
        self._cover(1)
        payload = detached(change.get("payload", {}), "payload", MAX_NESTING)
        self._context.types.check(change["payloadType"], payload, payload)
        node = self._tree.add(spot.parent, change["payloadType"], payload)
        self._put_tags(node, frozenset(change.get("tags", ())))
        if not spot.is_last:
            self._tree.insert([node], spot.parent, index=spot.index, sibling=spot.sibling, after=spot.after)
        self._new = node.id
        return 1

    def _set(self, change: Change) -> int:
        nodes = self._nodes(change["at"])
        path = change["path"]
        patch = Patch({path: change["value"]}) if change["op"] == "set" else Patch({}, [path])
        for node in nodes:
            payload = patch.applied(self._context, node)
            if payload is not None:
                self._tree.write(node, payload)
        return len(nodes)

    def _move(self, change: Change) -> int:
        nodes = self._nodes(change["at"])
        spot = self._spot(change, nodes)
        self._tree.insert(nodes, spot.parent, index=spot.index, sibling=spot.sibling, after=spot.after)
        return len(nodes)

    def _tag(self, change: Change) -> int:
        if "add" not in change and "remove" not in change:
            raise SchemaMismatch(path="add", problem="is missing, and so is 'remove'", hint="Send one of them.")
        nodes = self._nodes(change["at"])
        added, gone = frozenset(change.get("add", ())), frozenset(change.get("remove", ()))
        for node in nodes:
            self._put_tags(node, (node.tags | added) - gone)
        return len(nodes)

    def _put_tags(self, node: Node, tags: frozenset[str]) -> None:
        self._context.limits.check("tags", len(tags), self._context.limits.tags)
        self._tree.tag(node, tags)

    def _copy(self, change: Change) -> int:
        nodes, target = self._nodes(change["at"]), self._one(change["parentId"])
        count = 0
        for node in nodes:
            self._cover(sum(1 for _ in walk(node)))
            count += len(copy_below(self._context, node, target, share=change["mode"] == "reference", argument="at"))
        return count

    def _sort(self, change: Change) -> int:
        nodes = self._nodes(change["at"])
        for node in nodes:
            self._cover(node.children_count)
            sort_below(self._context, node, by=change["by"], direction=change.get("direction"))
        return len(nodes)

    def _remove(self, change: Change) -> int:
        count = 0
        for node in self._nodes(change["at"]):
            # One that stood below another of them has gone with it.
            if self._tree.nodes.get(node.id) is node:
                gone = len(self._tree.remove(node))
                self._cover(gone)
                count += gone
        return count


_WHOLE = "changes"


def _is_of_the_whole(error: GroveError) -> bool:
    """Whether it is the batch that is too large, not one of its changes."""
    return isinstance(error, BatchTooLarge) and error.facts["argument"] == _WHOLE


def _check(change: Change, op: Op) -> None:
    """See that a change says what its op needs, and nothing else."""
    missing = next((name for name in op.needs if name not in change), None)
    known = ("op", *op.needs, *op.takes)
    odd = next((name for name, one in change.items() if name not in known and one is not None), None)
    if missing is not None or odd is not None:
        what = f"{missing!r} is missing" if missing is not None else f"{odd!r} does not belong here"
        needs, takes = ", ".join(op.needs), ", ".join(op.takes)
        takes = f", and takes {takes}" if takes else ""
        raise SchemaMismatch(path=missing or odd or "", problem=f"{what}: {change['op']!r} needs {needs}{takes}")
