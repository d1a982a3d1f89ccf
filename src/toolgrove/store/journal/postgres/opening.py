"""Opening a store in PostgreSQL: connected, brought to the newest version and read, or refused with one line."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from toolgrove.store.audit import AuditArchive, AuditSink, Notary, Sealed
from toolgrove.store.journal.journal import KeyLimits
from toolgrove.store.journal.postgres.following import read_all
from toolgrove.store.journal.postgres.ledger import LOCKED, PostgresLedger, prepare
from toolgrove.store.journal.postgres.reading import PostgresReader
from toolgrove.store.journal.postgres.replicas import Replica, calls, running
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.audit_bodies import AuditBodies
from toolgrove.store.journal.tables.audit_copies import AuditCopies
from toolgrove.store.journal.tables.audit_retention import AuditRetention, Days
from toolgrove.store.journal.tables.encoding import Damaged, checksum
from toolgrove.store.journal.tables.entries import EntryTables
from toolgrove.store.journal.tables.going_on import first_head, own, resumption
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.idempotency_keys import IdempotencyKeys
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import LeadsElsewhere, unavailable
from toolgrove.store.postgres.migrating import opened
from toolgrove.store.project import AsKnown, Known, agree
from toolgrove.store.unusable import StoreUnusable
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Clock

_NOW = "extract(epoch FROM clock_timestamp())::float8"
_FIRST = "INSERT INTO head (one, body, crc) VALUES (1, ?, ?) ON CONFLICT DO NOTHING"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenDatabase:
    """A store that this process has open, beside others perhaps."""

    project: str
    """Its identity."""
    ledger: PostgresLedger
    reader: PostgresReader
    recalling: PostgresReader
    """Finds keys; a long look at the tree does not hold it up."""
    keys: IdempotencyKeys
    copies: AuditCopies
    notary: Notary | None
    archive: AuditArchive | None
    replica: str
    """What this process is called among those that write the store."""
    said: Sequence[Sealed]
    """The records that it began with."""

    def close(self) -> None:
        """Let go."""
        self.copies.close()
        if self.archive is not None:
            self.archive.close()
        self.reader.close()
        self.recalling.close()
        self.ledger.close()
        if self.notary is not None:
            self.notary.close()


def open_database(
    address: DatabaseAddress,
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
) -> tuple[OpenDatabase, SavedWorkspace]:
    """The store and the workspace in it."""
    connection, replica = None, Replica(secrets.token_hex(8))
    try:
        if notary is not None:
            notary.open()
        if archive is not None:
            archive.open()
        connection = opened(address)
        with unavailable(address):
            tables = PostgresTables(connection)
            prepare(tables, replica)
            body = first_head(sinks, known()).text()
            tables.execute(_FIRST, (body, checksum(body)))
            head, saved = read_all(tables)
            own(head, notary, address.told, change_key=change_key)
            keys = IdempotencyKeys(tables, clock, limits, now=_NOW)
            copies = AuditCopies(sinks, head.audit_number)
            retention = AuditRetention(
                clock, audit_days or head.audit_days or "forever", archive, notary=notary, is_shared=True
            )
            tables.execute("BEGIN")
            head = Head.read(tables, lock=LOCKED) or head
            agree(address.told, head.identity, known())
            if not head.project:
                head = head._replace(project=head.identity)
                head.write(tables)
            owned = own(head, notary, address.told, change_key=change_key)
            if owned.audit_key != head.audit_key:
                _be_alone(tables, replica, address)
            head = owned
            found = calls(tables)
            entries = EntryTables(keys, copies, retention, AuditBodies(record_bytes), found.all, notary, is_shared=True)
            going_on = partial(resumption, entries=entries, archive=archive, notary=notary, clock=clock)
            ledger = PostgresLedger(address, tables, head, entries, replica, clock, going_on)
            said = ledger.announce(tables, going_on(tables, head, left=found.orphans, lived=found.lived))
            tables.execute("COMMIT")
            address.expected.known, address.expected.is_open = known() or Known(head.project, "this replica"), True
            ledger.tell_outside()
    except BaseException as error:
        if connection is not None:
            if isinstance(error, StoreUnusable) and not connection.closed:
                _refused(connection, replica)
            connection.close()
        if notary is not None:
            notary.close()
        raise _told(address, error) from None
    opened_database = OpenDatabase(
        project=head.project,
        ledger=ledger,
        reader=PostgresReader(address),
        recalling=PostgresReader(address),
        keys=keys,
        copies=copies,
        notary=notary,
        archive=archive,
        replica=replica.name,
        said=said,
    )
    return opened_database, saved


def _be_alone(tables: PostgresTables, replica: Replica, address: DatabaseAddress) -> None:
    """Refuse to change the key while others sign with the one that was; who comes now waits for the head."""
    if not running(tables, but=replica.name):
        return
    raise StoreUnusable(
        where=address.told,
        problem="is used by other replicas, so the key of its audit log stays",
        advice="Stop all of them first; one that was killed counts as gone after a few seconds.",
    )


def _refused(connection: psycopg.Connection[tuple[Any, ...]], replica: Replica) -> None:
    """Whoever was refused is no replica, not for a few seconds either."""
    with suppress(psycopg.Error):
        connection.rollback()
        replica.leave(PostgresTables(connection))


def _told(address: DatabaseAddress, error: BaseException) -> BaseException:
    if isinstance(error, LeadsElsewhere):
        return error.found
    if isinstance(error, StoreUnusable) or not isinstance(
        error, (Damaged, psycopg.Error, OSError, KeyError, TypeError, ValueError)
    ):
        return error
    if isinstance(error, OSError):
        return StoreUnusable(
            where=address.told,
            problem=f"cannot be opened: {str(error).partition(' cannot be used: ')[2] or error}",
            advice="Check that the database runs, the address in workspace.store, and the rights of its role.",
        )
    return StoreUnusable(where=address.told, problem=f"is damaged: {error}", advice="Restore a backup of the database.")
