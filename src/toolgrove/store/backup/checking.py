"""Is a file whole: its pages, its rows and its audit chain."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from toolgrove.store.audit import START, AuditFile, Notary, Place, Proof
from toolgrove.store.journal import SqliteAuditLog
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.schema import VERSION, establish, recognize
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.loading import load
from toolgrove.store.project import Known
from toolgrove.store.read_only import reading_address
from toolgrove.store.state import STATE_VERSION, StateTooNew
from toolgrove.store.unusable import StoreUnusable


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A store that can be used: where its audit log ends, what that proves, and the public half of its key."""

    end: Place
    proof: Proof
    key: str
    project: str
    """Its identity; empty where nothing was ever kept in it."""


def check_store(path: Path, notary: Notary | None) -> Checked:
    """Read all of a store that nobody uses; raises StoreUnusable where it could not be opened."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            version, _ = recognize(path, connection)
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise Damaged(verdict)
            head = Head.read(connection)
            if head is not None and version == VERSION:
                load(connection, head)
            elif head is not None:
                _load_older(path, connection)
    except (sqlite3.Error, Damaged, KeyError, TypeError, ValueError) as error:
        raise unusable(path, error) from None
    # The mark of this machine is later than a backup; whether the chain holds up to its own end is the question.
    log = SqliteAuditLog(path, None if notary is None else notary.unmarked())
    key = "" if head is None else head.audit_key
    return Checked(
        end=START if head is None else head.place,
        proof=log.prove(),
        project="" if head is None else head.identity,
        key=key,
    )


def project_at(path: Path) -> Known | None:
    """Of which project a store is that stands there; None where there is none that says so."""
    if not path.exists():
        return None
    try:
        with closing(
            sqlite3.connect(reading_address(path, briefly=True), isolation_level=None, uri=True)
        ) as connection:
            head = Head.read(connection)
    except (
        sqlite3.Error,
        Damaged,
        KeyError,
        TypeError,
        ValueError,
    ):  # it is damaged, and that may be why it is replaced
        return None
    return None if head is None else Known(head.identity, path)


def _load_older(path: Path, connection: sqlite3.Connection) -> None:
    """Read the workspace of a store of an older format, through a copy in today's; it stays as it is itself."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        copy = Path(folder) / "store.db"
        with closing(sqlite3.connect(copy, isolation_level=None)) as today:
            connection.backup(today)
            establish(copy, today)
            head = Head.read(today)
            if head is not None:
                load(today, head)


def check_state(path: Path) -> None:
    """Read a state that nobody uses; raises StateTooNew, or StoreUnusable."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        verdict, version = str(error), 0
    if version > STATE_VERSION:
        raise StateTooNew(path, version)
    if verdict != "ok":
        advice = "Take another backup."
        raise StoreUnusable(kind="state", where=path.name, problem=f"is damaged: {verdict}", advice=advice)


def is_whole(log: Path, notary: Notary | None) -> bool:
    """Whether a log in a file can go on: every line is a record, and each follows the one before it."""
    proof = AuditFile(log, None if notary is None else notary.unmarked()).prove([], is_sealed=False)
    return proof.breach is None
