"""What differs between two states of a tree, or between two subtrees of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.notation.json_value import copied, identical
from toolgrove.tree.history import Images
from toolgrove.tree.moment import Moment, State
from toolgrove.tree.node import Node, Payload
from toolgrove.tree.tree import Tree, walk

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
        return {name: getattr(self, name) for name in ("added", "removed", "moved", "reordered", "changed")}


def diff_states(tree: Tree, old: Images, new: Images) -> Diff:
    """The difference of two states, given how each differs from the live tree."""
    diff = Diff()
    live = tree.nodes.get
    shuffled: dict[str, list[str]] = {}
    # The older of two states differs from the live tree wherever the younger one does.
    touched = old if len(old) >= len(new) else new
    before, after = Moment(tree, old), Moment(tree, new)
    for node_id in touched:
        was = old[node_id] if node_id in old else live(node_id)
        now = new[node_id] if node_id in new else live(node_id)
        if was is None or now is None:
            if now is not None:
                diff.added.append({**_state(node_id, now), **_place(after, node_id, now)})
            elif was is not None:
                diff.removed.append({**_state(node_id, was), **_place(before, node_id, was)})
            continue
        old_parent, new_parent = was.parent_id, now.parent_id
        if old_parent is not None and new_parent is not None and old_parent != new_parent:
            places = {"oldIndex": before.index(old_parent, node_id), "newIndex": after.index(new_parent, node_id)}
            diff.moved.append({"nodeId": node_id, "oldParentId": old_parent, "newParentId": new_parent, **places})
        elif was.rank != now.rank and new_parent is not None:
            shuffled.setdefault(new_parent, []).append(node_id)
        change = _change(node_id, was, now)
        if change is not None:
            diff.changed.append(change)
    if shuffled:
        families = _families(tree, shuffled, touched, old)
        for parent_id, node_ids in shuffled.items():
            diff.reordered.extend(_reordered(tree, parent_id, families[parent_id], node_ids, old, new))
    return diff


def _place(moment: Moment, node_id: str, state: State) -> Entry:
    return {} if state.parent_id is None else {"index": moment.index(state.parent_id, node_id)}


def _state(node_id: str, state: State) -> Entry:
    form = {"nodeId": node_id, "parentId": state.parent_id, "payloadType": state.type, "payload": copied(state.payload)}
    return {**form, "tags": sorted(state.tags)} if state.tags else form


def _change(node_id: str, was: State, now: State) -> Entry | None:
    entry: Entry = {"nodeId": node_id}
    if was.payload is not now.payload:
        properties = payload_changes(was.payload, now.payload)
        if properties:
            entry["properties"] = properties
    if was.type != now.type:
        entry["payloadType"] = {"old": was.type, "new": now.type}
    if was.tags is not now.tags and was.tags != now.tags:
        entry["tags"] = {"old": sorted(was.tags), "new": sorted(now.tags)}
    return {**entry, "parentId": now.parent_id} if len(entry) > 1 else None


def payload_changes(was: Payload, now: Payload) -> dict[str, Any]:
    """Old and new value of every property that differs; an absent one has no entry on its side."""
    changes: dict[str, Any] = {}
    gone = 0
    for key, old in was.items():
        if key not in now:
            gone += 1
            changes[key] = {"old": copied(old)}
        elif (new := now[key]) is not old and not identical(old, new):
            changes[key] = {"old": copied(old), "new": copied(new)}
    if len(now) > len(was) - gone:
        changes.update((key, {"new": copied(new)}) for key, new in now.items() if key not in was)
    return changes


def _families(tree: Tree, parents: Iterable[str], touched: Images, old: Images) -> dict[str, dict[str, None]]:
    """The children of some parents, those included that are gone from the live tree."""
    live = tree.nodes.get
    families: dict[str, dict[str, None]] = {}
    for parent_id in parents:
        parent = live(parent_id)
        families[parent_id] = dict.fromkeys((parent.children if parent else None) or ())
    for node_id in touched:
        was = old[node_id] if node_id in old else live(node_id)
        if was is not None and was.parent_id in families:
            families[was.parent_id][node_id] = None
    return families


def _reordered(
    tree: Tree, parent_id: str, children: Iterable[str], node_ids: list[str], old: Images, new: Images
) -> list[Entry]:
    """The nodes whose rank changed, unless the children that stayed are in the same order all the same."""
    stayed: list[tuple[str, State, State]] = []
    for child_id in children:
        live = tree.nodes.get(child_id)
        was, now = old.get(child_id, live), new.get(child_id, live)
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
        if one.tags != other.tags:
            entry["tags"] = {"old": sorted(one.tags), "new": sorted(other.tags)}
        if one.type != other.type:
            entry["payloadType"] = {"old": one.type, "new": other.type}
        if properties:
            entry["properties"] = properties
        if len(entry) > 2:
            diff.changed.append({**entry, "parentId": one.parent_id})
        ours, theirs = _keyed(one), _keyed(other)
        gone = [child for key, child in ours.items() if key not in theirs]
        new = [child for key, child in theirs.items() if key not in ours]
        diff.removed.extend(_below(one, gone))
        diff.added.extend(_below(other, new))
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


def _below(parent: Node, children: Iterable[Node]) -> Iterator[Entry]:
    """Some children of a node with all below them, each with its place."""
    places = {child: place for place, child in enumerate(parent.children or ())}
    for child in children:
        yield {**_state(child.id, child), "index": places[child.id]}
        for node in walk(child):
            for place, inner in enumerate((node.children or {}).values()):
                yield {**_state(inner.id, inner), "index": place}


def _keyed(node: Node) -> Mapping[tuple[str, str | None, int], Node]:
    seen: dict[tuple[str, str | None], int] = {}
    keyed: dict[tuple[str, str | None, int], Node] = {}
    for child in (node.children or {}).values():
        kind = (child.type, child.name)
        seen[kind] = seen.get(kind, 0) + 1
        keyed[(*kind, seen[kind])] = child
    return keyed
