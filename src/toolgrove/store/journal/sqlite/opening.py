"""Opening a store: taken, checked and read, or refused with one line that says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolgrove.store.audit import AuditArchive, AuditSink, Notary
from toolgrove.store.file_contents import FileContents
from toolgrove.store.file_marks import FileMarks
from toolgrove.store.journal.journal import KeyLimits
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.ledger import Ledger
from toolgrove.store.journal.sqlite.owner import Owner, create
from toolgrove.store.journal.sqlite.schema import connect, connect_reader, establish, flaw
from toolgrove.store.journal.tables import unfinished_calls
from toolgrove.store.journal.tables.audit_bodies import AuditBodies
from toolgrove.store.journal.tables.audit_copies import AuditCopies
from toolgrove.store.journal.tables.audit_retention import AuditRetention, Days
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.entries import EntryTables
from toolgrove.store.journal.tables.going_on import first_head, own, resumption
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.idempotency_keys import IdempotencyKeys
from toolgrove.store.journal.tables.loading import load
from toolgrove.store.project import AsKnown, Known, OtherProject, agree
from toolgrove.store.restore_plan import finish
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Clock

_MOMENT = 100
"""Milliseconds that a group waits for a store that somebody else holds; then its writers wait elsewhere, together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenStore:
    """A store that this process owns: its connections, and what writes and reads through them."""

    project: str
    """Its identity."""
    owner: Owner
    connection: sqlite3.Connection
    reader: sqlite3.Connection
    ledger: Ledger
    keys: IdempotencyKeys
    copies: AuditCopies
    notary: Notary | None
    files: FileMarks
    archive: AuditArchive | None

    def close(self) -> None:
        """Leave one tidy file behind, and let go."""
        self.copies.close()
        if self.archive is not None:
            self.archive.close()
        try:
            if not self.files.are_lost():
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:  # a full disk, say; the next start reads the -wal file
            pass
        finally:
            self.files.close(self.reader, self.connection)
            if self.notary is not None:
                self.notary.close()
            self.owner.release()


def open_store(
    path: Path,
    clock: Clock,
    *,
    sinks: Sequence[AuditSink],
    limits: KeyLimits,
    audit_days: Days | None,
    archive: AuditArchive | None,
    record_bytes: int,
    notary: Notary | None,
    change_key: bool,
    known: AsKnown,
) -> tuple[OpenStore, SavedWorkspace]:
    """The store and the workspace in it."""
    try:
        owner = Owner(path)
    except OSError as error:
        raise unusable(path, error) from None
    connections: list[sqlite3.Connection] = []
    files: FileMarks | None = None
    try:
        finish(path)
        create(path)
        if notary is not None:
            notary.open()
        if archive is not None:
            archive.open()
        connection = connect(path)
        connections.append(connection)
        establish(path, connection)
        problem = flaw(connection)
        if problem is not None:
            raise Damaged(problem)
        head = _of_this_project(path, connection, Head.read(connection), sinks, known())
        head = own(head, notary, path, change_key=change_key)
        saved = load(connection, head)
        reader = connect_reader(path)
        connections.append(reader)
        keys = IdempotencyKeys(connection, clock, limits)
        copies = AuditCopies(sinks, head.audit_number)
        retention = AuditRetention(clock, audit_days or head.audit_days or "forever", archive, notary=notary)
        unfinished = unfinished_calls.read(connection)
        files = FileMarks.of_database(path, "-lock", contents=FileContents(path, _telling(connection)))
        entries = EntryTables(keys, copies, retention, AuditBodies(record_bytes), unfinished, notary)
        ledger = Ledger(connection, head, entries, files)
        ledger.announce(resumption(connection, head, entries=entries, archive=archive, notary=notary, clock=clock))
        connection.execute(f"PRAGMA busy_timeout={_MOMENT}")
    except BaseException as error:
        for one in connections:
            one.close()
        if files is not None:
            files.close()
        if notary is not None:
            notary.close()
        owner.release()
        if isinstance(error, OtherProject):
            raise
        if isinstance(error, (Damaged, sqlite3.Error, OSError, KeyError, TypeError, ValueError)):
            raise unusable(path, error) from None
        raise
    opened = OpenStore(
        project=head.identity,
        owner=owner,
        connection=connection,
        reader=reader,
        ledger=ledger,
        keys=keys,
        copies=copies,
        notary=notary,
        files=files,
        archive=archive,
    )
    return opened, saved


def _telling(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """The parts of the file that tell one state of it from every other: its header, and the page of the head."""
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'head'").fetchone()
    return [(0, 100), ((page - 1) * size, size)]


def _of_this_project(
    path: Path, connection: sqlite3.Connection, head: Head | None, sinks: Sequence[AuditSink], known: Known | None
) -> Head:
    """The head, of a new store too; raises OtherProject, and leaves the store as it is, if it is another project's."""
    if head is not None:
        agree(path, head.identity, known)
        if head.project:
            return head
    head = first_head(sinks, known) if head is None else head._replace(project=head.identity)
    head.write(connection)
    return head
