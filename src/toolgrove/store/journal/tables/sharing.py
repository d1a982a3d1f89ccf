"""An entry as other processes take it over: all that it changed, as a row beside the one of its past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrove.store.journal.news import Deed
from toolgrove.store.journal.tables.encoding import checksum, decode_all, encode
from toolgrove.store.journal.tables.loading import read_fold, read_image, read_past, read_snapshot, read_view
from toolgrove.store.journal.tables.rows import Row, Rows, fold_fields, snapshot_fields, view_fields
from toolgrove.tree.effects import BookmarkChange, Change, Effects, Mark, SnapshotChange
from toolgrove.tree.node import Image, Payload
from toolgrove.tree.view import ViewChange

SHARE = "INSERT INTO entry (revision, body, crc)"
READ = "journal.revision, journal.base, journal.id, journal.parent, journal.body, journal.crc, entry.body, entry.crc"
Stored = tuple[int, int, str, str, str, int, str, int]


def shared(rows: Rows) -> Row:
    """The row of an entry with effects."""
    effects, audit = rows.effects, rows.audit
    if effects is None:
        raise ValueError("an entry without effects is nobody else's affair")
    deed = (audit.call_id, audit.operation, audit.chain, audit.run_id, audit.parent_call_id)
    facts = (
        effects.session,
        effects.mark._asdict(),
        [node_id for node_id, image in effects.after.items() if image is None],
        [_change(change) for change in effects.changes],
        None if effects.view is None else view_fields(effects.agent, effects.view),
        None if effects.folds is None else [fold_fields(moment, fold) for moment, fold in effects.folds.items()],
        deed,
    )
    nodes = ",".join(body for body in rows.nodes.values() if body is not None)
    body = f"[{encode(facts)},[{nodes}]]"
    return effects.revision, body, checksum(body)


def read_parent(stored: Stored) -> str:
    """The change that an entry rests on."""
    return stored[3]


def read_entry(stored: Stored) -> tuple[Effects, Deed]:
    """The effects that a row and its past describe."""
    revision, base, identity, parent, past_body, past_crc, body, crc = stored
    ((facts, nodes),) = decode_all("entry", [(body, crc)])
    (fields,) = decode_all("journal", [(past_body, past_crc)])
    session, mark, gone, changes, view, folds, deed = facts
    after: dict[str, Image | None] = dict.fromkeys(gone)
    for node_id, *image in nodes:
        after[node_id] = read_image(image)
    payloads: dict[str, Payload] = {node_id: image.payload for node_id, image in after.items() if image is not None}
    past = read_past(fields, payloads)
    effects = Effects(
        agent=past.agent,
        session=session,
        base=base,
        revision=revision,
        parent=parent,
        id=identity,
        mark=Mark(**mark),
        commits=past.commits,
        after=after,
        changes=tuple(_read_change(one) for one in changes),
        view=None if view is None else read_view(view),
        move=past.move,
        folds=None if folds is None else dict(map(read_fold, folds)),
        delegated=past.delegated,
    )
    call_id, tool, chain, run_id, parent = deed
    return effects, Deed(call_id=call_id, tool=tool, chain=tuple(chain), run_id=run_id, parent_call_id=parent)


def _change(change: Change) -> Mapping[str, Any]:
    match change:
        case ViewChange(session=session, expanded=expanded, reset=reset):
            return {"session": session, "expanded": dict(expanded), "reset": reset}
        case BookmarkChange(agent=agent, label=label, node_id=node_id):
            return {"agent": agent, "label": label, "node": node_id}
        case SnapshotChange(snapshot=snapshot, dropped=dropped):
            return {"snapshot": snapshot_fields(snapshot), "dropped": dropped}


def _read_change(one: Mapping[str, Any]) -> Change:
    if "snapshot" in one:
        return SnapshotChange(snapshot=read_snapshot(one["snapshot"]), dropped=one["dropped"])
    if "label" in one:
        return BookmarkChange(agent=one["agent"], label=one["label"], node_id=one["node"])
    return ViewChange(session=one["session"], expanded=one["expanded"], reset=one["reset"])
