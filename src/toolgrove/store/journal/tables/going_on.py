"""Going on with the audit log of a store: whether all that it once held is there, and what it says first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import (
    AuditArchive,
    AuditSink,
    Notary,
    Place,
    Tail,
    Unfinished,
    end_of_log,
    read_record,
    resume,
)
from toolgrove.store.audit.resuming import Resumption
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.entries import EntryTables
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.project import Known
from toolgrove.types import Clock


def first_head(sinks: Sequence[AuditSink], known: Known | None) -> Head:
    """The head of a new store of this project; its audit chain goes on from a log file that is already there."""
    number, digest = end_of_log(sinks).place
    fresh = Head.fresh() if known is None else Head.fresh(known.project)
    return fresh._replace(audit_number=number, audit_hash=digest, audit_floor=digest, audit_floor_number=number)


def own(head: Head, notary: Notary | None, where: object, *, change_key: bool) -> Head:
    """The head of a store whose audit log this project's key signs; raises StoreUnusable where another did.

    `change_key` lets the log go on under this one.
    """
    if notary is None or not head.audit_key or notary.holds(head.seal_text, head.audit_seal):
        return head
    if head.audit_key != notary.public:
        if not change_key:
            raise notary.another("store", where)
        head = head._replace(audit_key="")
    return head


def resumption(
    connection: Connection,
    head: Head,
    *,
    entries: EntryTables,
    archive: AuditArchive | None,
    notary: Notary | None,
    clock: Clock,
    left: Unfinished | None = None,
    lived: Callable[[str], str] | None = None,
    known: Place | None = None,
) -> Resumption:
    """What the audit log has to say first; copies whose end it lost go on behind that.

    `left` are calls that nobody goes on with; without it, all that have not ended. `lived` tells until when the process
    of each is known to have lived; without it, only one process writes the store, and its last record tells. `known` is
    where a process that goes on has seen the log stand.
    """
    noted = None if notary is None else notary.noted()
    archived = [archive.end] if archive is not None and archive.end is not None else []
    passed = [*entries.copies.ends, *(place for place in (noted, known) if place is not None), *archived]
    missed = [place for place in passed if not _holds(connection, head, place)]
    is_sealed = bool(head.audit_key) and entries.is_sealed(head)
    last = connection.execute("SELECT timestamp FROM audit ORDER BY number DESC LIMIT 1").fetchone()
    tail = Tail(
        place=head.place, unfinished=entries.unfinished if left is None else left, last="" if last is None else last[0]
    )
    going_on = resume(tail, missed, notary, to_milliseconds(clock.wall()), lived, is_sealed=is_sealed)
    if going_on.lost is not None:
        entries.copies.pass_over(missed, going_on.lost.number)
    return going_on


def _holds(connection: Connection, head: Head, place: Place) -> bool:
    """Whether a place is one that the store's chain passed; what retention took away is believed."""
    if place.number <= head.floor.number or place == head.place:
        return True
    found = connection.execute("SELECT line FROM audit WHERE number = ?", (place.number,)).fetchone()
    link = read_record(found[0]) if found is not None else None
    return link is not None and link.place == place
