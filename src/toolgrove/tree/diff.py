"""What differs between two states of a tree, or between two subtrees of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.tree.json_value import copied, identical
from toolgrove.tree.node import Image, Node, Payload
from toolgrove.tree.property_path import MISSING
from toolgrove.tree.tree import Tree, walk

ImageAt = Callable[[str], Image | None]
Entry = dict[str, Any]


@dataclass(kw_only=True, slots=True)
class Diff:
    """Five lists of what happened, each entry with the node it happened to."""

    added: list[Entry] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)
    moved: list[Entry] = field(default_factory=list)
    reordered: list[Entry] = field(default_factory=list)
    changed: list[Entry] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The lists by name."""
        return {name: getattr(self, name) for name in ("added", "removed", "moved", "reordered", "changed")}


def diff_states(tree: Tree, ids: Iterable[str], old: ImageAt, new: ImageAt) -> Diff:
    """The difference of two states, given every id that may differ."""
    diff = Diff()
    shuffled: dict[str, list[str]] = {}
    touched: list[str] = []
    for node_id in ids:
        touched.append(node_id)
        was, now = old(node_id), new(node_id)
        if was is None or now is None:
            if now is not None:
                diff.added.append(_state(node_id, now))
            elif was is not None:
                diff.removed.append(_state(node_id, was))
            continue
        if was.parent_id != now.parent_id:
            diff.moved.append({"nodeId": node_id, "oldParentId": was.parent_id, "newParentId": now.parent_id})
        elif was.rank != now.rank and now.parent_id is not None:
            shuffled.setdefault(now.parent_id, []).append(node_id)
        change = _change(node_id, was, now)
        if change is not None:
            diff.changed.append(change)
    for parent_id, node_ids in shuffled.items():
        diff.reordered.extend(_reordered(tree, parent_id, node_ids, touched, old, new))
    return diff


def _state(node_id: str, image: Image) -> Entry:
    return {"nodeId": node_id, "parentId": image.parent_id, "payloadType": image.type, "payload": copied(image.payload)}


def _change(node_id: str, was: Image, now: Image) -> Entry | None:
    entry: Entry = {"nodeId": node_id}
    if was.payload is not now.payload:
        properties = payload_changes(was.payload, now.payload)
        if properties:
            entry["properties"] = properties
    if was.type != now.type:
        entry["payloadType"] = {"old": was.type, "new": now.type}
    if was.tags is not now.tags and was.tags != now.tags:
        entry["tags"] = {"old": sorted(was.tags), "new": sorted(now.tags)}
    return entry if len(entry) > 1 else None


def payload_changes(was: Payload, now: Payload) -> dict[str, Any]:
    """Old and new value of every property that differs; an absent one has no entry on its side."""
    changes: dict[str, Any] = {}
    shared = 0
    for key, old in was.items():
        new = now.get(key, MISSING)
        if new is MISSING:
            changes[key] = {"old": copied(old)}
            continue
        shared += 1
        if old is not new and not identical(old, new):
            changes[key] = {"old": copied(old), "new": copied(new)}
    if shared < len(now):
        changes.update((key, {"new": copied(new)}) for key, new in now.items() if key not in was)
    return changes


def _reordered(
    tree: Tree, parent_id: str, node_ids: list[str], touched: list[str], old: ImageAt, new: ImageAt
) -> list[Entry]:
    """The nodes whose rank changed, unless the children that stayed are in the same order all the same."""
    node = tree.nodes.get(parent_id)
    candidates = dict.fromkeys([*((node.children if node else None) or ()), *touched])
    stayed: list[tuple[str, Image, Image]] = []
    for child_id in candidates:
        was, now = old(child_id), new(child_id)
        if was and now and was.parent_id == parent_id == now.parent_id:
            stayed.append((child_id, was, now))
    before = {child[0]: place for place, child in enumerate(sorted(stayed, key=lambda child: child[1].rank))}
    after = {child[0]: place for place, child in enumerate(sorted(stayed, key=lambda child: child[2].rank))}
    if before == after:
        return []
    return [{"nodeId": one, "parentId": parent_id, "oldIndex": before[one], "newIndex": after[one]} for one in node_ids]


def diff_subtrees(left: Node, right: Node) -> Diff:
    """Compare two subtrees by place: children pair up by type and name, the k-th with the k-th."""
    diff = Diff()
    queue = deque([(left, right)])
    while queue:
        one, other = queue.popleft()
        properties = payload_changes(one.payload, other.payload)
        entry: Entry = {"nodeId": one.id, "otherNodeId": other.id}
        if one.type != other.type:
            entry["payloadType"] = {"old": one.type, "new": other.type}
        if properties:
            entry["properties"] = properties
        if len(entry) > 2:
            diff.changed.append(entry)
        ours, theirs = _keyed(one), _keyed(other)
        gone = [child for key, child in ours.items() if key not in theirs]
        new = [child for key, child in theirs.items() if key not in ours]
        diff.removed.extend(_state(node.id, node.image()) for child in gone for node in walk(child))
        diff.added.extend(_state(node.id, node.image()) for child in new for node in walk(child))
        pairs = [(ours[key], theirs[key]) for key in ours if key in theirs]
        order = {theirs[key].id: place for place, key in enumerate(key for key in theirs if key in ours)}
        for place, (mine, yours) in enumerate(pairs):
            if order[yours.id] != place:
                diff.reordered.append(
                    {
                        "nodeId": mine.id,
                        "otherNodeId": yours.id,
                        "parentId": one.id,
                        "oldIndex": place,
                        "newIndex": order[yours.id],
                    }
                )
        queue.extend(pairs)
    return diff


def _keyed(node: Node) -> Mapping[tuple[str, str | None, int], Node]:
    seen: dict[tuple[str, str | None], int] = {}
    keyed: dict[tuple[str, str | None, int], Node] = {}
    for child in (node.children or {}).values():
        kind = (child.type, child.name)
        seen[kind] = seen.get(kind, 0) + 1
        keyed[(*kind, seen[kind])] = child
    return keyed
