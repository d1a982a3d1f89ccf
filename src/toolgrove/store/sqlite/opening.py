"""Opening a store: taken, checked and read, or refused with one line that says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolgrove.store.audit import AuditSink, end_of_log
from toolgrove.store.journal import KeyLimits
from toolgrove.store.sqlite.body import Damaged
from toolgrove.store.sqlite.copies import Copies
from toolgrove.store.sqlite.diagnosis import unusable
from toolgrove.store.sqlite.head import Head
from toolgrove.store.sqlite.keys import Keys
from toolgrove.store.sqlite.ledger import Ledger
from toolgrove.store.sqlite.loading import load
from toolgrove.store.sqlite.owner import Owner, create
from toolgrove.store.sqlite.retention import Retention
from toolgrove.store.sqlite.schema import connect, connect_reader, establish, flaw
from toolgrove.tree.saved import Saved
from toolgrove.types import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A store in use."""

    owner: Owner
    connection: sqlite3.Connection
    reader: sqlite3.Connection
    ledger: Ledger
    keys: Keys
    copies: Copies

    def close(self) -> None:
        """Leave one tidy file behind, and let go."""
        self.copies.close()
        self.reader.close()
        try:
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:  # a full disk, say; the next start reads the -wal file
            pass
        finally:
            self.connection.close()
            self.owner.release()


def open_store(
    path: Path, clock: Clock, *, sinks: Sequence[AuditSink], limits: KeyLimits, audit_days: int | None
) -> tuple[Opened, Saved]:
    """The store and the workspace in it."""
    try:
        owner = Owner(path)
    except OSError as error:
        raise unusable(path, error) from None
    connections: list[sqlite3.Connection] = []
    try:
        create(path)
        connection = connect(path)
        connections.append(connection)
        establish(path, connection)
        problem = flaw(connection)
        if problem is not None:
            raise Damaged(problem)
        head = Head.read(connection) or _begin(connection, sinks)
        saved = load(connection, head)
        reader = connect_reader(path)
        connections.append(reader)
        keys = Keys(connection, clock, limits)
        copies = Copies(sinks, head.audit_number)
        copies.update(connection, head.audit_number)
        ledger = Ledger(connection, head, keys, copies, Retention(clock, audit_days))
    except BaseException as error:
        for one in connections:
            one.close()
        owner.release()
        if isinstance(error, (Damaged, sqlite3.Error, OSError, KeyError, TypeError, ValueError)):
            raise unusable(path, error) from None
        raise
    return Opened(owner=owner, connection=connection, reader=reader, ledger=ledger, keys=keys, copies=copies), saved


def _begin(connection: sqlite3.Connection, sinks: Sequence[AuditSink]) -> Head:
    """The head of a new store; its audit chain goes on from a log file that is already there."""
    number, digest = end_of_log(sinks)
    head = Head.fresh()._replace(audit_number=number, audit_hash=digest, audit_floor=digest)
    head.write(connection)
    return head
