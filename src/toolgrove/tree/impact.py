"""What a transaction does to what was there before it: the nodes it removes or overwrites, and a sentence in names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolgrove.notation.json_value import canonical, identical
from toolgrove.notation.unseen_text import one_line
from toolgrove.tree.diff import Diff, diff_states
from toolgrove.tree.effects import BookmarkChange, Change, SnapshotChange
from toolgrove.tree.history import Images
from toolgrove.tree.node import Image, Node, name_of
from toolgrove.tree.tree import Tree

_NAMES = 3
_PROPERTIES = 5
_LONGEST = 60
NOTHING = "changes nothing"


class Impact:
    """The difference between the live tree and what some nodes were before.

    `bookmarks` are the caller's own, as they stand before its `changes` beside the tree.
    """

    def __init__(self, tree: Tree, before: Images, changes: Sequence[Change], bookmarks: Mapping[str, str]) -> None:
        self._tree, self._before, self._changes, self._bookmarks = tree, before, changes, bookmarks

    @property
    def digest(self) -> str:
        """What would be removed or overwritten, as it is now; empty if nothing is.

        Ancestors, siblings and places among them are no part of it, so that others can go on working meanwhile.
        """
        lines = sorted(self._lost())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""

    def _lost(self) -> Iterator[str]:
        for node_id, was in self._before.items():
            now = self._tree.nodes.get(node_id)
            if was is not None and (now is None or not _differs_in_place_only(was, now)):
                kind = "removed" if now is None else "changed"
                yield canonical([kind, node_id, was.parent_id, was.type, was.payload, sorted(was.tags)])
        for change in self._changes:
            if isinstance(change, BookmarkChange) and change.label in self._bookmarks:
                yield canonical(["bookmark", change.label, self._bookmarks[change.label]])
            elif isinstance(change, SnapshotChange) and change.dropped:
                yield canonical(["snapshot", change.snapshot.id, change.snapshot.label])

    def sentence(self) -> str:
        """What happens, for a person to judge; of many names a few are told."""
        diff = diff_states(self._tree, self._before, {})
        parts = [*self._removed(diff), *self._changed(diff), *self._moved(diff), *self._added(diff), *self._beside()]
        return "; ".join(parts) or NOTHING

    def _removed(self, diff: Diff) -> Iterator[str]:
        gone = {entry["nodeId"]: entry["parentId"] for entry in diff.removed}
        tops = [node_id for node_id, parent_id in gone.items() if parent_id not in gone]
        if tops:
            below = len(gone) - len(tops)
            more = f" and {_count(below, 'node')} below {'it' if len(tops) == 1 else 'them'}" if below else ""
            yield f"removes {self._names(tops)}{more}"

    def _changed(self, diff: Diff) -> Iterator[str]:
        overwritten = {entry["nodeId"]: entry["properties"] for entry in diff.changed if "properties" in entry}
        lost = {node_id: [key for key in keys if "old" in keys[key]] for node_id, keys in overwritten.items()}
        new = {node_id: [key for key in keys if "old" not in keys[key]] for node_id, keys in overwritten.items()}
        yield from self._properties("overwrites", "of", lost)
        yield from self._properties("adds", "to", new)
        for key, what in (("payloadType", "type"), ("tags", "tags")):
            nodes = [entry["nodeId"] for entry in diff.changed if key in entry]
            if nodes:
                yield f"changes the {what} of {self._names(nodes)}"

    def _properties(self, verb: str, joint: str, changed: Mapping[str, Sequence[str]]) -> Iterator[str]:
        nodes = [node_id for node_id, keys in changed.items() if keys]
        keys = list(dict.fromkeys(key for node_id in nodes for key in changed[node_id]))
        if nodes:
            kind = "property" if len(keys) == 1 else "properties"
            yield f"{verb} {len(keys)} {kind} {joint} {self._names(nodes)}: {_listed(keys, _PROPERTIES)}"

    def _moved(self, diff: Diff) -> Iterator[str]:
        targets = dict.fromkeys(entry["newParentId"] for entry in diff.moved)
        for target in list(targets)[:_NAMES]:
            nodes = [entry["nodeId"] for entry in diff.moved if entry["newParentId"] == target]
            sources = list(dict.fromkeys(entry["oldParentId"] for entry in diff.moved if entry["nodeId"] in set(nodes)))
            yield f"moves {self._names(nodes)} from {self._names(sources)} to {self._names([target])}"
        if len(targets) > _NAMES:
            yield f"moves nodes to {_count(len(targets) - _NAMES, 'other parent')}"
        parents = list(dict.fromkeys(entry["parentId"] for entry in diff.reordered))
        if parents:
            yield f"changes the order of the children of {self._names(parents)}"

    def _added(self, diff: Diff) -> Iterator[str]:
        new = {entry["nodeId"]: entry["parentId"] for entry in diff.added}
        parents = list(dict.fromkeys(parent_id for parent_id in new.values() if parent_id not in new))
        if parents:
            what = self._names(new) if len(new) == 1 else _count(len(new), "node")
            yield f"adds {what} to {self._names(parents)}"

    def _beside(self) -> Iterator[str]:
        own_view = False
        for change in self._changes:
            match change:
                case SnapshotChange(snapshot=snapshot, dropped=dropped):
                    yield f"{'deletes' if dropped else 'takes'} the snapshot {_quoted(snapshot.label)}"
                case BookmarkChange(label=label, node_id=None):
                    yield f"removes the bookmark {_quoted(label)}"
                case BookmarkChange(label=label, node_id=str(node_id)):
                    verb = "moves" if label in self._bookmarks else "sets"
                    yield f"{verb} the bookmark {_quoted(label)} to {self._names([node_id])}"
                case _:
                    own_view = True
        if own_view:
            yield "changes its own view"

    def _names(self, node_ids: Iterable[str | None]) -> str:
        return _listed([self._name(node_id) for node_id in node_ids if node_id is not None], _NAMES)

    def _name(self, node_id: str) -> str:
        """The name that the node has before, since that is the one which people know."""
        state = self._before.get(node_id) or self._tree.nodes.get(node_id)
        return (name_of(state.payload) if state is not None else None) or node_id


def _differs_in_place_only(was: Image, now: Node) -> bool:
    return (
        was.parent_id == now.parent_id
        and was.type == now.type
        and was.tags == now.tags
        and identical(was.payload, now.payload)
    )


def _listed(names: Sequence[str], most: int) -> str:
    shown = [_quoted(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {_count(len(names) - most, 'other')}"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _quoted(name: str) -> str:
    """A name that cannot end its own quotes, hide a character or fill the page."""
    cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return f"'{one_line(cut).replace(chr(39), chr(92) + chr(39))}'"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
