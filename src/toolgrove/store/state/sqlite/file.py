"""The state file: what several processes of one project share, in SQLite.

Transactions are short and begin by taking the write lock, so that a gateway and a command line never deadlock. Reads
and pins run where they are called: a reader has a connection of its own, so in WAL mode it never waits, and a pin is
one row, written once per tool. Approvals go through a worker thread, since they may have to wait for another process.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from toolgrove.store.file_contents import FileContents
from toolgrove.store.file_marks import FileMarks
from toolgrove.store.private_file import create_private
from toolgrove.store.read_only import is_read_only, reading_address
from toolgrove.store.state.sqlite.shared_contents import SharedContents
from toolgrove.store.state.unavailable import StateBusy, StateUnavailable
from toolgrove.types import Clock, SystemClock

log = logging.getLogger("toolgrove.store")
VERSION = 12
STATE_FILE = "state.db"
PATIENCE = 2.0
_AGAIN = 0.01
_SCHEMA = """
CREATE TABLE pins (
    server TEXT NOT NULL,
    own_name TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    pinned_at REAL NOT NULL,
    pinned_by TEXT NOT NULL,
    seen_hash TEXT NOT NULL,
    seen_definition TEXT,
    seen_at REAL,
    refused_hash TEXT NOT NULL DEFAULT '',
    refused_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (server, own_name)
) WITHOUT ROWID;
CREATE TABLE met (server TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    rule TEXT NOT NULL,
    receipt TEXT NOT NULL,
    sends TEXT,
    chain TEXT NOT NULL,
    effect TEXT NOT NULL,
    footprint_hash TEXT NOT NULL,
    earlier TEXT,
    run_id TEXT NOT NULL,
    parent_call_id TEXT,
    asked_by TEXT,
    state TEXT NOT NULL,
    requested_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    monotonic REAL NOT NULL,
    decided_at REAL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    lasts TEXT,
    uses INTEGER NOT NULL,
    closed_at REAL,
    call_id TEXT NOT NULL,
    process INTEGER NOT NULL,
    replaces TEXT NOT NULL
);
CREATE INDEX approvals_of_a_call ON approvals (agent, tool, arguments_hash, definition_hash);
CREATE TABLE tokens (hash TEXT PRIMARY KEY, holder TEXT NOT NULL, used_at REAL, expires_at REAL) WITHOUT ROWID;
CREATE TABLE logins (server TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE deeds (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
CREATE TABLE project (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL);
"""
_PROJECT = "SELECT id FROM project"
_BELONG = "INSERT OR IGNORE INTO project (one, id) VALUES (1, ?)"
_STEPS = (
    "ALTER TABLE approvals ADD COLUMN sends TEXT",
    # An approval from before knows nothing of chains, footprints and the running clock: the call asks anew.
    """
    ALTER TABLE approvals ADD COLUMN chain TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE approvals ADD COLUMN effect TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN footprint_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN monotonic REAL NOT NULL DEFAULT 0;
    ALTER TABLE approvals ADD COLUMN lasts TEXT;
    ALTER TABLE approvals ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE approvals ADD COLUMN call_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN process INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE approvals ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
    UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved');
    """,
    # Every server that has a pin was met.
    """
    ALTER TABLE pins ADD COLUMN refused_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE pins ADD COLUMN refused_by TEXT NOT NULL DEFAULT '';
    CREATE TABLE met (server TEXT PRIMARY KEY) WITHOUT ROWID;
    INSERT INTO met SELECT DISTINCT server FROM pins;
    """,
    """
    ALTER TABLE tokens ADD COLUMN used_at REAL;
    UPDATE tokens SET used_at = 0;
    CREATE TABLE deeds (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
    """,
    "ALTER TABLE approvals ADD COLUMN earlier TEXT",
    """
    ALTER TABLE tokens RENAME TO single_tokens;
    CREATE TABLE tokens (hash TEXT PRIMARY KEY, holder TEXT NOT NULL, used_at REAL) WITHOUT ROWID;
    INSERT INTO tokens SELECT hash, holder, used_at FROM single_tokens;
    DROP TABLE single_tokens;
    """,
    """
    ALTER TABLE approvals ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN parent_call_id TEXT;
    """,
    "ALTER TABLE tokens ADD COLUMN expires_at REAL",
    "CREATE TABLE logins (server TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "ALTER TABLE approvals ADD COLUMN asked_by TEXT",
    "CREATE TABLE project (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL)",
)
"""What leads from each format to the next, the first one first."""


class StateGone(StateUnavailable):
    """The state file was deleted, replaced or overwritten while it was open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted, replaced or overwritten while it was open: stop the gateway, put the file back or "
            "restore a backup, and start again."
        )


class StateTooNew(Exception):
    """A newer Toolgrove wrote the file."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"{path} has format {version}, and this version of Toolgrove knows formats up to {VERSION}: "
            "update Toolgrove, or name another state file."
        )


class StateFile:
    """One SQLite file, readable by its owner only."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._held_since: float | None = None
        self._lock = threading.RLock()
        self._reading = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._files: FileMarks | None = None
        self._contents: SharedContents | None = None
        self._project = ""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Open the file, and make it if there is none; transactions do so by themselves."""
        with self._lock:
            if self._connection is None:
                with _as_unavailable(self.path):
                    closed = is_read_only(self.path)
                    self._connection = _looked_at(self.path) if closed else _opened(self.path, self._project)
                    self._reader = _looked_at(self.path) if closed else _connect(self.path)
                    self._files = FileMarks.of_database(self.path)
                    self._contents = SharedContents(self._connection, FileContents(self.path))

    def belong(self, project: str) -> None:
        """Have it say of which project it is, from the moment on when it is there; one that says so is left alone."""
        self._project = project
        if self.path.exists() and project_of(self.path) is None and not is_read_only(self.path):
            with self.writing() as connection:
                connection.execute(_BELONG, (project,))

    @property
    def is_lost(self) -> bool:
        """Whether it was deleted, replaced or overwritten while it was open, as of the last look."""
        return self._files is not None and self._files.lost

    def look(self) -> None:
        """See whether it is still there; the log hears of it once if not."""
        if self._files is None or self._files.lost:
            return
        if not self._files.are_lost() and self._lock.acquire(blocking=False):  # who writes looks for itself
            try:
                if self._contents is not None and self._contents.are_foreign():
                    self._files.overwritten()
            finally:
                self._lock.release()
        if self._files.lost:
            log.critical("%s", StateGone(self.path))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock, self._reading:
            connections = [one for one in (self._reader, self._connection) if one is not None]
            if self._files is not None:
                self._files.close(*connections)
            if self._contents is not None:
                self._contents.close()
            self._reader = self._connection = self._files = self._contents = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Look, without keeping anybody from writing."""
        if self._reader is None:
            self.open()
        with self._reading, _as_unavailable(self.path):
            self._check()
            yield self._required(self._reader)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Change something, whole or not at all; durable means that it also outlives a power cut."""
        with self._lock:
            self.open()
            connection = self._required(self._connection)
            self._check()
            with _as_unavailable(self.path):
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._begin(connection)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise
            if self._contents is not None:
                self._contents.settle()
            self._check()  # what was written into a file that nobody finds again was not written

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Take the write lock; all who want it share one wait, which begins when it is first found taken."""
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            else:
                self._held_since = None
                return
            now = self._clock.monotonic()
            if self._held_since is None:
                self._held_since = now
            if now - self._held_since >= PATIENCE:
                raise StateBusy(self.path)
            time.sleep(_AGAIN)

    def _check(self) -> None:
        self.look()
        if self.is_lost:
            raise StateGone(self.path)

    def _required(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:  # pragma: no cover
            raise StateUnavailable(f"{self.path} is closed")
        return connection


def project_of(path: Path) -> str | None:
    """What a state file says of its project; None where there is no file, or one that does not say."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(reading_address(path, briefly=True), timeout=PATIENCE, uri=True)) as connection:
            row = connection.execute(_PROJECT).fetchone()
    except sqlite3.Error:  # of an older format, or damaged, as whoever opens it will say
        return None
    return None if row is None else str(row[0])


def _opened(path: Path, project: str) -> sqlite3.Connection:
    create_private(path)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    connection = _connect(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        _migrate(connection, path)
        if project:
            connection.execute(_BELONG, (project,))
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _looked_at(path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody here may write, which is enough for looking."""
    connection = sqlite3.connect(reading_address(path), isolation_level=None, check_same_thread=False, uri=True)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        connection.close()
        raise StateUnavailable(
            f"{path} has format {version}, and cannot be brought to format {VERSION}: it is read-only."
        )
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    """A connection for calls from any thread, one at a time under a lock; transactions are ours to begin."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StateTooNew(path, version)
        if version < VERSION:
            script = _SCHEMA if version == 0 else ";".join(_STEPS[version - 1 :])
            for statement in filter(str.strip, script.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # after some faults SQLite has done so itself
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _as_unavailable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StateUnavailable(f"{path} cannot be used: {error}") from error
