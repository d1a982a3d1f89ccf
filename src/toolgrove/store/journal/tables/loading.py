"""Reading a workspace back, and refusing what is not exactly what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import Damaged, decode_all
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.rows import SAME
from toolgrove.tree.effects import TreeSnapshot
from toolgrove.tree.history import Commit, Lineage
from toolgrove.tree.node import NO_TAGS, Image, Payload
from toolgrove.tree.property_path import PropertyFilter
from toolgrove.tree.saved import PastCall, SavedWorkspace
from toolgrove.tree.tree import ROOT
from toolgrove.tree.view import View


def load(connection: Connection, head: Head) -> SavedWorkspace:
    """The workspace that the tables hold."""
    nodes = _nodes(connection, head)
    past, lineage = _past(connection, head, nodes)
    return SavedWorkspace(
        lineage=lineage,
        secret=bytes.fromhex(head.secret),
        revision=head.revision,
        mark=head.mark,
        nodes=nodes,
        past=past,
        folds=dict(map(read_fold, _bodies(connection, "fold", "moment"))),
        views=_views(connection),
        bookmarks=_bookmarks(connection),
        snapshots=[read_snapshot(fields) for fields in _bodies(connection, "snapshot", "number")],
    )


def _bodies(connection: Connection, table: str, order: str) -> Iterator[Any]:
    rows = connection.execute(f"SELECT body, crc FROM {table} ORDER BY {order}")  # noqa: S608  our own names
    return decode_all(table, rows.fetchall())


def _nodes(connection: Connection, head: Head) -> Mapping[str, Image]:
    nodes: dict[str, Image] = {}
    for node_id, *image in _bodies(connection, "node", "id"):
        nodes[node_id] = read_image(image)
    found = len(nodes) + (ROOT not in nodes)  # an untouched root has no row
    if found != head.mark.nodes:
        raise Damaged(f"nodes written: {head.mark.nodes}, nodes found: {found}")
    orphan = next((key for key, one in nodes.items() if one.parent_id not in nodes and one.parent_id not in _TOP), None)
    if orphan is not None:
        raise Damaged(f"the parent of node {orphan!r} is missing")
    return nodes


_TOP = (None, ROOT)


def read_image(fields: list[Any]) -> Image:
    """A node without its id."""
    if type(fields[1]) is not int:
        fields[1] = Fraction(fields[1])
    fields[4] = frozenset(fields[4]) if fields[4] else NO_TAGS
    return Image._make(fields)


def _past(connection: Connection, head: Head, nodes: Mapping[str, Image]) -> tuple[list[PastCall], Lineage]:
    rows = connection.execute("SELECT id, parent, revision, base, body, crc FROM journal ORDER BY revision").fetchall()
    stands, lineage = head.mark.floor, Lineage(rows[0][1] if rows else head.newest)
    for identity, parent, revision, base, *_ in rows:
        if base != stands and not (base < stands == head.mark.floor):
            raise Damaged(f"the journal has a gap before revision {revision}")
        if parent != lineage.last:
            raise Damaged(f"revision {revision} of the journal rests on {parent} instead of {lineage.last}")
        lineage.append(identity)
        stands = revision
    if lineage.last != head.newest:
        raise Damaged(f"the journal ends with {lineage.last} instead of {head.newest}")
    if stands != head.revision and (rows or head.revision > head.mark.floor):
        raise Damaged(f"the journal ends at revision {stands} instead of {head.revision}")
    # From the newest to the oldest: a payload that a commit left alone is the one found after it.
    payloads = {node_id: image.payload for node_id, image in nodes.items()}
    entries = list(decode_all("journal", [row[4:] for row in rows]))
    past = [read_past(fields, payloads) for fields in reversed(entries)]
    past.reverse()
    return past, lineage


def read_past(fields: Any, payloads: dict[str, Payload]) -> PastCall:
    """A call of the past; `payloads` are those that its nodes had after it, and then before it."""
    agent, move, commits, *more = fields  # whether it was delegated, and what it made; stores of before have less
    read = [_commit(agent, commit, payloads) for commit in reversed(commits)]
    return PastCall(agent=agent, move=move, commits=tuple(read[::-1]), delegated=bool(more and more[0]))


def _commit(agent: str, fields: Any, payloads: dict[str, Payload]) -> Commit:
    seq, tool, images, parents, dropped, returned, *at = fields  # stores of before do not know when
    before: dict[str, Image | None] = {}
    for node_id, image in images.items():
        if image is None:
            before[node_id] = None
            continue
        if image[3] == SAME:
            image[3] = payloads[node_id]
        payloads[node_id] = image[3]
        before[node_id] = read_image(image)
    return Commit(
        seq=seq,
        agent=agent,
        tool=tool,
        before=before,
        parents=frozenset(parents),
        dropped=tuple(map(tuple, dropped)),
        returned=tuple(map(tuple, returned)),
        at=at[0] if at else None,
    )


def read_fold(fields: Any) -> tuple[int, Commit]:
    """What is left of a span of the history."""
    moment, seq, images, dropped = fields
    return moment, _commit("", (seq, "", images, (), dropped, ()), {})


def _views(connection: Connection) -> dict[tuple[str, str], View]:
    views: dict[tuple[str, str], View] = {}
    for fields in _bodies(connection, "view", "agent, session"):
        views[fields[0], fields[1]] = read_view(fields)
    for agent, session, node_id, flag in _bodies(connection, "expanded", "place"):
        views[agent, session].expanded[node_id] = flag
    return views


def read_view(fields: Any) -> View:
    """A view, whose flags come later."""
    _, session, seq, default, node_filter, view_filter = fields
    return View(
        session=session,
        default_expanded=default,
        node_filter=PropertyFilter(*map(tuple, node_filter)),
        view_filter=PropertyFilter(*map(tuple, view_filter)),
        seq=seq,
    )


def _bookmarks(connection: Connection) -> dict[str, dict[str, str]]:
    bookmarks: dict[str, dict[str, str]] = {}
    for agent, label, node_id in _bodies(connection, "bookmark", "agent, label"):
        bookmarks.setdefault(agent, {})[label] = node_id
    return bookmarks


def read_snapshot(fields: Any) -> TreeSnapshot:
    """A snapshot."""
    snapshot_id, label, agent, seq, created, nodes = fields
    return TreeSnapshot(id=snapshot_id, label=label, agent=agent, seq=seq, created=created, nodes=nodes)
