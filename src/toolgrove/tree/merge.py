"""Merges a document into a tree; the caller rolls back if it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolgrove.errors import Conflict, InvalidArgument
from toolgrove.notation.json_value import identical
from toolgrove.tree.document import Incoming
from toolgrove.tree.footprint import Footprint
from toolgrove.tree.node import NO_TAGS, Node, Payload
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import ROOT, Tree

Strategy = Literal["upsert", "replace", "skip"]
MatchBy = Literal["nodeId", "path"]


@dataclass(kw_only=True, slots=True)
class Merged:
    """What a merge did, by node id; `id_map` leads from ids in the document to ids in the tree."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: int = 0
    id_map: dict[str, str] = field(default_factory=dict)


class Merge:
    """One merge of some incoming nodes."""

    def __init__(self, tree: Tree, types: PayloadTypes, *, strategy: Strategy, match_by: MatchBy, parent: Node) -> None:
        self.tree = tree
        self.types = types
        self.strategy = strategy
        self.match_by = match_by
        self.parent = parent
        self.done = Merged()
        self._segments: dict[str, dict[str, dict[str, Node]]] = {}
        self._matched: set[str] = set()
        self._told: set[str] = set()
        self._groups: dict[str, Node] = {}

    def run(self, incoming: Sequence[Incoming]) -> Merged:
        """Create and update nodes; with `replace`, also remove those that the document does not have."""
        if self.strategy == "replace" and any(node.is_cut for node in incoming):
            raise InvalidArgument(
                "This document was cut to a budget (it says so in 'cut' or moreChildren); replacing with it would "
                "delete what was cut. Export it with a larger maxTokens, or use strategy 'upsert'.",
                reason="document",
            )
        placed: list[Node] = []
        for one in incoming:
            if one.node_id is not None:
                self.tree.reserve(one.node_id)
        for one in incoming:
            parent = placed[one.parent] if one.parent is not None else self._outer_parent(one)
            found = self._match(one, parent)
            placed.append(self._create(one, parent) if found is None else self._update(one, found, parent))
            self._share(one, placed[-1])
        if self.strategy == "replace":
            self._trim(incoming, placed)
        elif self.strategy == "upsert":
            self._arrange(incoming, placed)
        return self.done

    @property
    def looked_at(self) -> Footprint:
        """What the outcome rests on beside what was changed: the nodes that were found, and the lists searched."""
        searched = [child for segments in self._segments.values() for found in segments.values() for child in found]
        return Footprint(nodes=frozenset(self._matched).union(searched), child_lists=frozenset(self._segments))

    def _outer_parent(self, one: Incoming) -> Node:
        return self.parent if one.parent_id is None else self.tree[one.parent_id]

    def _match(self, one: Incoming, parent: Node) -> Node | None:
        if self.match_by == "nodeId" or one.node_id == ROOT:
            return None if one.node_id is None else self.tree.nodes.get(one.node_id)
        found = self._by_segment(parent).get(one.segment, {})
        if len(found) > 1:
            raise _ambiguous(one.segment, list(found))
        node = next(iter(found.values()), None)
        if node is not None and node.id in self._matched:
            raise _twins(one.segment)
        return node

    def _by_segment(self, parent: Node) -> dict[str, dict[str, Node]]:
        """The children of a parent by path segment; listed once, then kept as the merge changes them."""
        segments = self._segments.get(parent.id)
        if segments is None:
            segments = self._segments[parent.id] = {}
            for child in (parent.children or {}).values():
                segments.setdefault(child.segment, {})[child.id] = child
        return segments

    def _create(self, one: Incoming, parent: Node) -> Node:
        self.types.check(one.type, one.payload, one.payload, one.node_id)
        node_id = None if one.node_id in self.tree else one.node_id
        node = self.tree.add(parent, one.type, one.payload, node_id)
        self.tree.tag(node, one.tags or NO_TAGS)
        if parent.id in self._segments:
            self._segments[parent.id].setdefault(node.segment, {})[node.id] = node
        self._matched.add(node.id)
        self._told.add(node.id)
        self.done.created.append(node.id)
        if one.node_id is not None and one.node_id != node.id:
            self.done.id_map[one.node_id] = node.id
        return node

    def _update(self, one: Incoming, node: Node, parent: Node) -> Node:
        self._matched.add(node.id)
        if self.strategy == "skip":
            self.done.skipped += 1
            return node
        if one.names_only:
            return node  # found by its name, so there is nothing else to say
        replace = self.strategy == "replace"
        payload = one.payload if replace else {**node.payload, **one.payload}
        tags = (one.tags or NO_TAGS) if replace else node.tags | (one.tags or NO_TAGS)
        changed = not identical(payload, node.payload) or one.type != node.type
        if changed:
            self.types.check(one.type, payload, one.payload, node.id)
            if one.type != node.type:
                self.tree.retype(node, one.type)
            if not identical(payload, node.payload):
                self._write(node, payload)
        moves = node.parent is not None and node.parent is not parent and self._has_parent(one)
        if moves:
            self.tree.move(node, parent)
        if changed or moves or tags != node.tags:
            self._tell_updated(node)
        self.tree.tag(node, tags)
        return node

    def _write(self, node: Node, payload: Payload) -> None:
        name = node.name
        for holder in self.tree.write(node, payload):
            segments = self._segments.get(holder.parent_id or "")
            if segments is not None and holder.name != name:
                del segments[name or holder.id][holder.id]
                segments.setdefault(holder.segment, {})[holder.id] = holder

    def _share(self, one: Incoming, node: Node) -> None:
        """Let nodes of one group in the document share their payload; none loses a property to that."""
        if one.group is None or (self.strategy == "skip" and not identical(node.payload, one.payload)):
            return
        first = self._groups.setdefault(one.group, node)
        if first is node or (node.group is not None and node.group == first.group):
            return
        if identical(first.payload, node.payload):
            self.tree.share(first, node)
            self._tell_updated(node)

    def _tell_updated(self, node: Node) -> None:
        if node.id not in self._told:
            self._told.add(node.id)
            self.done.updated.append(node.id)

    def _has_parent(self, one: Incoming) -> bool:
        return one.parent is not None or one.parent_id is not None

    def _trim(self, incoming: Sequence[Incoming], placed: Sequence[Node]) -> None:
        """Remove what is below a listed node but not listed, save the way to another listed one."""
        wanted = _families(incoming, placed)
        staying = self._with_all_above(placed)
        for listed in placed:
            stack = [listed]
            while stack:
                for child in list((stack.pop().children or {}).values()):
                    if child.id not in staying:
                        self.done.removed.extend(self.tree.remove(child))
                    elif child.id not in wanted:
                        stack.append(child)
        for node in placed:
            if wanted[node.id]:
                first = {child.id for child in wanted[node.id]}
                rest = [child for child in (node.children or {}).values() if child.id not in first]
                self._reorder(node, [*wanted[node.id], *rest])

    def _arrange(self, incoming: Sequence[Incoming], placed: Sequence[Node]) -> None:
        """Bring the listed children of listed nodes into the document's order; the others keep their places."""
        for parent_id, listed in _families(incoming, placed).items():
            parent, names = self.tree[parent_id], {child.id for child in listed}
            if len(listed) > 1:
                following = iter(listed)
                children = list((parent.children or {}).values())
                self._reorder(parent, [next(following) if child.id in names else child for child in children])

    def _reorder(self, parent: Node, order: list[Node]) -> None:
        for node_id in self.tree.reorder(parent, order):
            self._tell_updated(self.tree[node_id])

    def _with_all_above(self, placed: Sequence[Node]) -> set[str]:
        above: set[str] = set()
        for node in placed:
            at: Node | None = node
            while at is not None and at.id not in above:
                above.add(at.id)
                at = at.parent
        return above


def _families(incoming: Sequence[Incoming], placed: Sequence[Node]) -> dict[str, list[Node]]:
    """The listed nodes, each with those that the document has below it and that stand there."""
    families: dict[str, list[Node]] = {node.id: [] for node in placed}
    for one, node in zip(incoming, placed, strict=True):
        if one.parent is not None and node.parent is placed[one.parent]:
            families[placed[one.parent].id].append(node)
    return families


def _twins(segment: str) -> Conflict:
    return Conflict(
        f"The document has more than one node {segment!r} under the same parent, so a path cannot tell them apart. "
        "Rename one of them, or match by nodeId.",
        reason="ambiguous_path",
    )


def _ambiguous(segment: str, node_ids: list[str]) -> Conflict:
    return Conflict(
        f"The path segment {segment!r} fits {len(node_ids)} nodes ({', '.join(node_ids[:10])}). "
        "Match by nodeId, or rename one of them.",
        reason="ambiguous_path",
        nodeIds=node_ids[:50],
    )
