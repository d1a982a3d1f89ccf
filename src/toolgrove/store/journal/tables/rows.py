"""An entry as the rows that it becomes; made before the entry takes its place, so that only it can fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from toolgrove.notation.json_value import in_pieces
from toolgrove.store.audit import AuditRecord, capped
from toolgrove.store.journal.journal import IdempotencyRecord, JournalEntry
from toolgrove.store.journal.tables.encoding import checksum, encode, key
from toolgrove.tree.effects import BookmarkChange, Effects, SnapshotChange, TreeSnapshot
from toolgrove.tree.history import Commit
from toolgrove.tree.node import Image
from toolgrove.tree.view import View, ViewChange

Row = tuple[Any, ...]
Statement = tuple[str, list[Row]]
SAME = 0
"""Stands for a payload that the commit did not replace."""

_SET_FOLD = "INSERT INTO fold (moment, body, crc) VALUES (?, ?, ?)"
_SET_FLAG = (
    "INSERT INTO expanded (agent, session, node, body, crc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (agent, session, node) DO UPDATE SET body = excluded.body, crc = excluded.crc"
)
_DROP_FLAGS = "DELETE FROM expanded WHERE agent = ? AND session = ?"
_SET_VIEW = "INSERT OR REPLACE INTO view (agent, session, body, crc) VALUES (?, ?, ?, ?)"
_SET_BOOKMARK = "INSERT OR REPLACE INTO bookmark (agent, label, body, crc) VALUES (?, ?, ?, ?)"
_DROP_BOOKMARK = "DELETE FROM bookmark WHERE agent = ? AND label = ?"
_SET_SNAPSHOT = "INSERT INTO snapshot (number, body, crc) VALUES (?, ?, ?)"
_DROP_SNAPSHOT = "DELETE FROM snapshot WHERE number = ?"


class Rows(NamedTuple):
    """All that one journal entry writes, encoded, table by table."""

    audit: AuditRecord
    effects: Effects | None = None
    journal: str = ""
    nodes: Mapping[str, str | None] = MappingProxyType({})
    sums: Mapping[str, int | None] = MappingProxyType({})
    beside: Sequence[Statement] = ()
    key: IdempotencyRecord | None = None
    result: str = ""
    durable: bool = False
    overdue: bool = False

    @classmethod
    def of(cls, entry: JournalEntry) -> Rows:
        audit, effects, kept, durable, alone, overdue = entry
        audit = capped(audit)
        if effects is None and kept is None:
            return cls(audit, durable=True) if durable else cls(audit)
        result = "" if kept is None else encode([kept.agent, kept.key, kept.request, kept.result])
        if effects is None:
            return cls(audit, key=kept, result=result, durable=durable)
        nodes, beside = _nodes(effects), tuple(_beside(effects))
        sums = {node_id: None if body is None else checksum(body) for node_id, body in nodes.items()}
        past = _past(effects, sums.values(), pieces=alone)
        return cls(audit, effects, past, nodes, sums, beside, kept, result, overdue=overdue)

    @property
    def is_bare(self) -> bool:
        """Whether there is only an audit record, for which nobody waits."""
        return self.effects is None and self.key is None and not self.durable


def _nodes(effects: Effects) -> dict[str, str | None]:
    return {
        key(node_id): None if image is None else node_text(node_id, image) for node_id, image in effects.after.items()
    }


def node_text(node_id: str, image: Image) -> str:
    """A node as its row holds it, the same text in every process: a set of tags has no order of its own."""
    if len(image.tags) < 2:
        return encode((node_id, *image))
    return encode((node_id, *image[:4], sorted(image.tags), image.group))


def _past(effects: Effects, sums: Iterable[int | None], *, pieces: bool) -> str:
    """What undo, diffs and the change feed need: every touched node as it was before; and what it is now, as a sum."""
    later: dict[str, Image | None] = dict(effects.after)
    commits = [_commit(commit, later) for commit in reversed(effects.commits)]
    after = dict(zip(effects.after, sums, strict=True))
    past = [effects.agent, effects.move, commits[::-1], effects.delegated, after]
    return in_pieces(past, encode) if pieces else encode(past)


def _commit(commit: Commit, later: dict[str, Image | None]) -> Row:
    before: dict[str, Any] = {}
    for node_id, image in commit.before.items():
        then = later[node_id]
        later[node_id] = image
        if image is None:
            before[node_id] = None
        elif then is not None and image.payload is then.payload:
            before[node_id] = (*image[:3], SAME, *image[4:])
        else:
            before[node_id] = tuple(image)  # plain, it is encoded five times as fast
    return commit.seq, commit.tool, before, sorted(commit.parents), commit.dropped, commit.returned, commit.at


def _beside(effects: Effects) -> Iterable[Statement]:
    if effects.folds is not None:
        yield "DELETE FROM fold", [()]
        yield _SET_FOLD, [(moment, *_body(fold_fields(moment, fold))) for moment, fold in effects.folds.items()]
    for commit in effects.commits:
        if commit.dropped:
            yield _DROP_BOOKMARK, [(key(agent), key(label)) for agent, label, _ in commit.dropped]
        if commit.returned:
            yield _SET_BOOKMARK, [_bookmark(*bookmark) for bookmark in commit.returned]
    if effects.view is not None:
        yield _SET_VIEW, [_view(effects.agent, effects.view)]
    for change in effects.changes:
        match change:
            case ViewChange(expanded=flags, reset=reset):
                owner = (effects.agent, effects.session)
                if reset:
                    yield _DROP_FLAGS, [(key(effects.agent), key(effects.session))]
                if flags:
                    yield _SET_FLAG, [_flag(*owner, node_id, flag) for node_id, flag in flags.items()]
            case BookmarkChange(agent=agent, label=label, node_id=None):
                yield _DROP_BOOKMARK, [(key(agent), key(label))]
            case BookmarkChange(agent=agent, label=label, node_id=str(node_id)):
                yield _SET_BOOKMARK, [_bookmark(agent, label, node_id)]
            case SnapshotChange(snapshot=snapshot, dropped=True):
                yield _DROP_SNAPSHOT, [(_number(snapshot),)]
            case SnapshotChange(snapshot=snapshot):
                yield _SET_SNAPSHOT, [(_number(snapshot), *_body(snapshot_fields(snapshot)))]


def fold_fields(moment: int, fold: Commit) -> Row:
    """What is left of a span of the history."""
    return moment, fold.seq, fold.before, fold.dropped


def _body(value: Any) -> tuple[str, int]:
    text = encode(value)
    return text, checksum(text)


def _bookmark(agent: str, label: str, node_id: str) -> Row:
    return key(agent), key(label), *_body((agent, label, node_id))


def _flag(agent: str, session: str, node_id: str, flag: bool) -> Row:
    return key(agent), key(session), key(node_id), *_body((agent, session, node_id, flag))


def _view(agent: str, view: View) -> Row:
    return key(agent), key(view.session), *_body(view_fields(agent, view))


def view_fields(agent: str, view: View) -> Row:
    """A view without its flags."""
    filters = [(one.included, one.excluded) for one in (view.node_filter, view.view_filter)]
    return agent, view.session, view.seq, view.default_expanded, *filters


def _number(snapshot: TreeSnapshot) -> int:
    return int(snapshot.id[1:])


def snapshot_fields(snapshot: TreeSnapshot) -> Row:
    """A snapshot."""
    return snapshot.id, snapshot.label, snapshot.agent, snapshot.seq, snapshot.created, snapshot.nodes
