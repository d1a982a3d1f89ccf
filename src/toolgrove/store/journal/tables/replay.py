"""Replaying the journal against the stored tree, and the stored tree against those that processes serve.

A row of the journal says what each node that a change touched was before it, and, as a checksum, what it is after it.
So the history is walked backwards from the nodes of now. At each change every node must be as that change left it;
then what was before takes its place, and must be a tree again. Who walks so far that no change is left must stand
before the empty tree. Where changes are shared as entries as well, these must say the same.

What this proves: the rows of nodes and journal fit each other, as far back as the journal reaches. A node that no kept
change touched is vouched for by none; how many those are is told. Checksums find damage and mistakes. They are no
seals: whoever can write the store can write all of it anew, and only the audit log tells of that.

It knows the columns and what stands in them, and refuses to know the code that reads a workspace. A tree has a digest
that follows it from change to change, so that a process which serves an older version can be compared as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from toolgrove.store.audit import Difference, Served, TreeProof
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import checksum, encode, key
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.rows import SAME, node_text
from toolgrove.tree.history import read_id
from toolgrove.tree.node import Image

_ROOT = "root"
_FRESH: list[Any] = [None, 0, "Root", {}, [], None]
"""The root as long as nobody touches it; it has no row then."""
_PARENT, _RANK, _PAYLOAD = 0, 1, 3
_TOLD = 50
_DIGEST = 16
_JOURNAL = "SELECT id, parent, revision, base, body, crc FROM journal ORDER BY revision DESC"


def digest_of(nodes: Iterable[tuple[str, Image]]) -> str:
    """The digest of a tree in memory."""
    return _written(sum(_weight(node_text(node_id, image)) for node_id, image in nodes))


def replay(
    connection: Connection,
    served: Sequence[Served] = (),
    *,
    is_shared: bool = False,
    kept_as: Callable[[str], str] = str,
) -> TreeProof:
    """What the journal says of the stored tree, and that of the served ones; the connection sees one moment.

    `is_shared` where changes are there as entries, too; `kept_as` is how a text stands in a column.
    """
    head = Head.read(connection)
    if head is None:
        return TreeProof(unchecked=("the tree: the store is empty",))
    walk = _Walk(head)
    walk.read(connection, kept_as)
    walk.go_back(connection.execute(_JOURNAL).fetchall(), _entries(connection) if is_shared else {})
    for one in served:
        walk.compare(one)
    return TreeProof(
        changes=walk.changes,
        served=len(served),
        is_proved=not walk.doubts,
        is_moving=walk.is_moving,
        differs=tuple(walk.differs[:_TOLD]),
        unchecked=(*walk.doubts, *walk.remarks),
    )


def _entries(connection: Connection) -> dict[int, tuple[str, int]]:
    rows = connection.execute("SELECT revision, body, crc FROM entry").fetchall()
    return {revision: (body, crc) for revision, body, crc in rows}


def _weight(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=_DIGEST).digest(), "big")


def _written(total: int) -> str:
    return f"{total % (1 << 8 * _DIGEST):0{2 * _DIGEST}x}"


class _Walk:
    """The tree on its way back, and what did not fit."""

    def __init__(self, head: Head) -> None:
        self.differs: list[Difference] = []
        self.doubts: list[str] = []
        self.remarks: list[str] = []
        self.changes = 0
        self.is_moving = False
        self._head = head
        self._texts: dict[str, str] = {}
        self._fields: dict[str, list[Any]] = {}
        self._places: Counter[tuple[str | None, str]] = Counter()
        self._below: Counter[str | None] = Counter()
        self._total = 0
        self._digests: dict[str, int] = {}
        self._touched_by: dict[str, str] = {}
        """By which later change a node on the way is known; nodes of now are known by their rows."""

    def differ(self, what: str, name: str, problem: str) -> None:
        self.differs.append(Difference(what=what, name=name, problem=problem))

    def read(self, connection: Connection, kept_as: Callable[[str], str]) -> None:
        """Take the nodes of now, which must be a tree."""
        count = 0
        for column, body, crc in connection.execute("SELECT id, body, crc FROM node").fetchall():
            count += 1
            fields = _parsed(body, crc)
            if fields is None or len(fields) != len(_FRESH) + 1 or kept_as(key(fields[0])) != column:
                self.differ("node", column, "its row is not as it was written: its checksum, or its name, does not fit")
            else:
                self._put(fields[0], fields[1:])
        if _ROOT not in self._fields:
            count += 1
            self._put(_ROOT, _FRESH)
        if count != self._head.mark.nodes:
            self.differ("store", "node", f"there are {count} nodes, and the newest change left {self._head.mark.nodes}")
        self._check(self._fields)
        children: dict[str | None, list[str]] = {}
        for node_id, fields in self._fields.items():
            children.setdefault(fields[_PARENT], []).append(node_id)
        way, seen = [_ROOT], 1
        while way:
            found = children.get(way.pop(), [])
            way += found
            seen += len(found)
        if seen != len(self._fields) and not self.differs:
            self.differ("store", "node", f"{len(self._fields) - seen} nodes are not below the root")

    def go_back(self, rows: Sequence[tuple[Any, ...]], entries: Mapping[int, tuple[str, int]]) -> None:
        """Take back one change after the other."""
        expected, stands = self._head.newest, self._head.revision
        silent = None
        for identity, parent, revision, base, body, crc in rows:
            if (identity, revision) != (expected, stands):
                problem = f"is not in the journal, where {identity} stands in its place"
                self.differ("change", expected, problem)
            self._digests[identity] = self._total
            past = _parsed(body, crc)
            if past is None:
                self.differ("change", identity, "its row is not as it was written: its checksum does not fit")
                self.doubts.append(f"the changes before {identity}")
                return
            after = past[4] if len(past) > 4 else None
            if after is None:
                silent = silent or identity
            self._see(identity, past[2], after)
            if revision in entries:
                self._see_entry(identity, entries[revision])
            elif entries and revision > min(entries):
                self.differ("entry", identity, "what it did is not there for other replicas")
            for commit in reversed(past[2]):
                self._take_back(identity, commit[2])
            self.changes += 1
            expected, stands = parent, base
        self._digests.setdefault(expected, self._total)
        if silent is not None:
            self.doubts.append(f"what {silent} and the changes before it made: an earlier version did not note that")
        self._end(expected, stands)

    def _end(self, oldest: str, stands: int) -> None:
        """Nothing is left of a history that is all there."""
        floor = self._head.mark.floor
        if stands > floor:
            self.differ("change", oldest, f"is not in the journal, which reaches back to {floor}")
        elif stands:
            rest = [node_id for node_id in self._fields if node_id not in self._touched_by and node_id != _ROOT]
            self.remarks.append(f"changes up to {floor}, which are no longer kept")
            if rest:
                self.remarks.append(f"{len(rest)} nodes, which no change touched that is kept")
        else:
            for node_id in self._fields:
                first = self._touched_by.get(node_id)
                if node_id != _ROOT and first is None:
                    self.differ("node", node_id, "no change made it")
                elif node_id != _ROOT:
                    self.differ("change", str(first), f"says that {node_id} was there before it, and no change made it")

    def compare(self, served: Served) -> None:
        """Compare the tree that a process serves with the stored one at the same version."""
        read = read_id(served.version)
        if served.digest is None:
            self.doubts.append(f"replica {served.name}, which serves nothing now: it left the stored history")
        elif served.version in self._digests:
            if _written(self._digests[served.version]) != served.digest:
                self.differ("replica", served.name, f"serves another tree than the stored one at {served.version}")
        elif self.doubts or (read is not None and read[1] < self._head.mark.floor):
            self.doubts.append(f"replica {served.name}: the journal does not reach back to its {served.version}")
        else:
            self.is_moving = True
            self.differ("replica", served.name, f"serves {served.version}, which is not in the stored history")

    def _see(self, change: str, commits: Sequence[Any], after: Mapping[str, int | None] | None) -> None:
        """Whether every node is as a change left it."""
        touched = {node_id for commit in commits for node_id in commit[2]}
        if after is not None and after.keys() != touched:
            self.differ("change", change, "it tells of other nodes than those that it touched")
        for node_id, left in (after or {}).items():
            text = self._texts.get(node_id)
            if (None if text is None else checksum(text)) == left:
                continue
            later = self._touched_by.get(node_id)
            if later is not None:
                self.differ("change", later, f"says that {node_id} was otherwise before it than {change} left it")
            elif text is None:
                self.differ("node", node_id, f"is not there, and {change} left it in the tree")
            elif left is None:
                self.differ("node", node_id, f"is there, and {change} removed it")
            else:
                self.differ("node", node_id, f"is not as {change}, the last change that touched it, left it")

    def _see_entry(self, change: str, row: tuple[str, int]) -> None:
        """Whether other replicas are told of the same."""
        entry = _parsed(*row)
        if entry is None:
            self.differ("entry", change, "its row is not as it was written: its checksum does not fit")
            return
        facts, made = entry
        told: dict[str, str | None] = dict.fromkeys(facts[2])
        told |= {node[0]: _text(node) for node in made}
        for node_id, text in told.items():
            if self._texts.get(node_id) != text:
                self.differ("entry", change, f"tells other replicas of another {node_id} than it left")

    def _take_back(self, change: str, images: Mapping[str, list[Any] | None]) -> None:
        """Put what was before in the place of what a commit made."""
        gone = []
        for node_id, image in images.items():
            there = self._fields.get(node_id)
            if image is None:
                gone.append(node_id)
                if there is None:
                    self.differ("change", change, f"made {node_id}, which is not there after it")
            elif image[_PAYLOAD] == SAME and type(image[_PAYLOAD]) is int:
                if there is None:
                    self.differ("change", change, f"left the payload of {node_id}, which is not there after it")
                image[_PAYLOAD] = {} if there is None else there[_PAYLOAD]
            self._drop(node_id)
            self._touched_by[node_id] = change
        for node_id, image in images.items():
            if image is not None:
                self._put(node_id, image)
        for node_id in gone:
            if self._below[node_id]:
                self.differ("change", change, f"made {node_id}, and there are nodes below it before that")
        self._check([node_id for node_id, image in images.items() if image is not None], change)

    def _check(self, node_ids: Iterable[str], change: str | None = None) -> None:
        """Whether nodes have a parent, and a place of their own below it."""
        for node_id in node_ids:
            parent, rank = self._fields[node_id][_PARENT], str(self._fields[node_id][_RANK])
            problem = None
            if parent is None if node_id != _ROOT else parent is not None:
                problem = f"{node_id} has no parent" if parent is None else f"{node_id} has a parent"
            elif parent is not None and parent not in self._fields:
                problem = f"{node_id} is below {parent}, which is not there"
            elif self._places[parent, rank] > 1:
                problem = f"{node_id} stands where another child of {parent} stands"
            if problem is not None and change is None:
                self.differ("node", node_id, problem)
            elif problem is not None:
                self.differ("change", str(change), f"before it {problem}")

    def _put(self, node_id: str, fields: list[Any]) -> None:
        self._fields[node_id] = fields
        self._texts[node_id] = text = _text([node_id, *fields])
        self._total += _weight(text)
        self._below[fields[_PARENT]] += 1
        self._places[fields[_PARENT], str(fields[_RANK])] += 1

    def _drop(self, node_id: str) -> None:
        fields = self._fields.pop(node_id, None)
        if fields is not None:
            self._total -= _weight(self._texts.pop(node_id))
            self._below[fields[_PARENT]] -= 1
            self._places[fields[_PARENT], str(fields[_RANK])] -= 1


def _text(node: list[Any]) -> str:
    """A node as its row holds it; earlier versions, and the journal, have its tags in any order."""
    return encode([*node[:5], sorted(node[5]), node[6]])


def _parsed(body: str, crc: int) -> Any | None:
    """What a row holds; None where that is not what was written."""
    if checksum(body) != crc:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return None
