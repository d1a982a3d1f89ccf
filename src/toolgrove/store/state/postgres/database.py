"""The state's part of a project's database: short transactions, one writer at a time in all replicas.

A writer waits for its turn at an advisory lock, as processes wait for the write lock of a state file. A connection that
was lost is made again; one that was lost while it committed is asked about: what became of a transaction is looked up
by its number, never guessed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import psycopg

from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import Connection, DatabaseUnavailable, connect
from toolgrove.store.postgres.migrating import lock_key, opened
from toolgrove.store.postgres.migrations import version
from toolgrove.store.state.postgres.time import DatabaseClock
from toolgrove.store.state.unavailable import StateAway, StateBusy
from toolgrove.types import Clock, SystemClock

Kind = Literal["pins", "approvals", "tokens", "logins", "deeds", "files", "handoffs"]
PAUSE = 1.0
"""Seconds in which a database that could not be reached is not tried again: whoever asks must not wait each time."""
_TURN = "SELECT pg_advisory_xact_lock(%s), pg_current_xact_id()::text, extract(epoch FROM clock_timestamp())::float8"
_LEAD = "SELECT pg_try_advisory_lock(%s)"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
_OLDEST = "SELECT oldest FROM head"
_CHANGED = "UPDATE state_change SET number = number + 1 WHERE kind = %s"


def channel(address: DatabaseAddress) -> str:
    """Where changes of the state are told; the payload is their kind."""
    return f"{address.schema[:50]}_state"


class StateDatabase:
    """One connection that writes and one that reads, for calls from any thread, one at a time."""

    def __init__(self, address: DatabaseAddress, clock: Clock | None = None) -> None:
        self.address = address
        self.clock = DatabaseClock(clock or SystemClock())
        self._monotonic = (clock or SystemClock()).monotonic
        self._turn = lock_key(address, "state")
        self._writing = threading.RLock()
        self._reading = threading.RLock()
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._away_until = 0.0
        self._leading: set[tuple[Connection, str]] = set()

    def __enter__(self) -> StateDatabase:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect, and bring the schema to the newest version."""
        with self._writing:
            if self._writer is None:
                self._writer = opened(self.address)

    def close(self) -> None:
        """Let go of the connections."""
        with self._writing, self._reading:
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = None

    def leads(self, task: str) -> bool:
        """Whether a task is this process's own; it is so until its connection ends, and then another's."""
        with self._writing:
            self._writer = connection = self._begun(self._writer, "BEGIN")
            with self._unavailable():
                if (connection, task) not in self._leading:
                    row = connection.execute(_LEAD, (lock_key(self.address, task),)).fetchone()
                    self._leading = {one for one in self._leading if one[0] is connection}
                    if row == (True,):
                        self._leading.add((connection, task))
                connection.execute("COMMIT")
            return (connection, task) in self._leading

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one moment of the state, without keeping anybody from writing."""
        with self._reading:
            self._reader = connection = self._begun(self._reader, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                with self._unavailable():
                    yield connection
                    connection.execute("COMMIT")
                    row = connection.execute(_NOW).fetchone()
                    assert row is not None  # noqa: S101  (a SELECT of one value)
                    self.clock.heard(row[0])
            except BaseException:
                self._reader = _rolled_back(connection)
                raise

    @contextmanager
    def writing(self, kind: Kind) -> Iterator[Connection]:
        """Change something, whole or not at all; every replica hears which kind it was."""
        with self._writing:
            self._writer = connection = self._begun(self._writer, "BEGIN")
            number = ""
            try:
                with self._unavailable():
                    row = connection.execute(_TURN, (self._turn,)).fetchone()
                    assert row is not None  # noqa: S101  (a SELECT of one row)
                    number = row[1]
                    self.clock.heard(row[2])
                    self._see_version(connection)
                    yield connection
                    connection.execute(_CHANGED, (kind,))
                    connection.execute("SELECT pg_notify(%s, %s)", (channel(self.address), kind))
                self._commit(connection, number)
            except BaseException:
                self._writer = _rolled_back(connection)
                raise

    def _see_version(self, connection: Connection) -> None:
        """Change nothing that a newer version has taken over from this one."""
        row = connection.execute(_OLDEST).fetchone()
        if row is not None and row[0] > version():
            raise StateAway(self.address.told, f"a newer Toolgrove has taken it over from version {version()}")

    def _begun(self, connection: Connection | None, begin: str) -> Connection:
        """A connection with an open transaction; one that an earlier server left behind is made again."""
        if connection is not None:
            try:
                connection.execute(begin.encode())
                return connection
            except psycopg.Error:
                connection.close()
        if self._monotonic() < self._away_until:
            raise StateAway(self.address.told, "it could not be reached a moment ago")
        try:
            fresh = connect(self.address) if connection is not None else opened(self.address)
            with self._unavailable():
                fresh.execute(begin.encode())
        except DatabaseUnavailable as problem:
            self._away_until = self._monotonic() + PAUSE
            raise StateAway(self.address.told, problem) from None
        return fresh

    def _commit(self, connection: Connection, number: str) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError as problem:
            if self._became(number) != "committed":
                raise StateAway(self.address.told, problem) from None
            self._writer = None

    def _became(self, number: str) -> str | None:
        """What a transaction came to, by its number; None where nobody can say."""
        ends = time.monotonic() + PAUSE
        with suppress(DatabaseUnavailable, psycopg.Error), connect(self.address) as fresh:
            while True:
                row = fresh.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
                if row is None or row[0] != "in progress" or time.monotonic() > ends:
                    return None if row is None else row[0]
                time.sleep(0.01)
        return None

    @contextmanager
    def _unavailable(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            raise StateBusy(self.address.told) from None
        except psycopg.Error as problem:
            raise StateAway(self.address.told, DatabaseUnavailable(self.address, problem)) from problem


def _rolled_back(connection: Connection) -> Connection | None:
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        return connection
    connection.close()
    return None
