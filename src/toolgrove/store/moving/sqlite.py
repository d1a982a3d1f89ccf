"""A store in a file, with its state file."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from toolgrove.store.journal.sqlite.owner import Owner
from toolgrove.store.journal.sqlite.schema import VERSION, connect, connect_reader, establish, recognize
from toolgrove.store.moving.journal_tables import Row, Table
from toolgrove.store.moving.state_contents import StateContents
from toolgrove.store.private_file import create_private
from toolgrove.store.state import Moment, StateFile
from toolgrove.store.state.deeds import read_deed
from toolgrove.store.state.sqlite.approvals import ApprovalRows
from toolgrove.store.state.sqlite.logins import every_login, put_login
from toolgrove.store.state.sqlite.pins import every_pin, put_pin

_BESIDE = ("", "-wal", "-shm")


class SqlitePlace:
    """The file of a journal, and the state file of the project."""

    def __init__(self, store: Path, state: Path | None) -> None:
        self._store, self._state_path = store, state
        self._connection: sqlite3.Connection | None = None

    @property
    def told(self) -> str:
        """What it is called."""
        return f"sqlite:{self._store}"

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Have it as it stands; no gateway may hold it."""
        if not self._store.exists():
            raise ValueError(f"{self._store} is not there: name the store of the project, such as sqlite:data/grove.db")
        owner = Owner(self._store)
        try:
            self._connection = connect_reader(self._store)
            version, _ = recognize(self._store, self._connection)
            if version != VERSION:
                raise ValueError(f"{self._store} has an older format; open the project once with this version first")
            self._connection.execute("BEGIN")
            yield
        finally:
            self._close()
            owner.release()

    @contextmanager
    def entering(self) -> Iterator[None]:
        """Make the files; they go again where something fails."""
        for path in (self._store, self._state_path):
            if path is not None and path.exists() and not (path == self._state_path and self._has_no_decisions()):
                raise ValueError(f"{path} is there already, and only an empty store can be filled: move it away first")
        owner = Owner(self._store)
        try:
            create_private(self._store)
            self._connection = connect(self._store)
            establish(self._store, self._connection)
            self._connection.execute("BEGIN EXCLUSIVE")
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._close()
            for path in (self._store, self._state_path):
                for end in _BESIDE if path is not None else ():
                    with suppress(FileNotFoundError):
                        Path(f"{path}{end}").unlink()
            raise
        finally:
            self._close()
            owner.release()

    def _has_no_decisions(self) -> bool:
        return self.state().is_empty

    def rows(self, table: Table) -> Iterator[Row]:
        """Every row, in order."""
        yield from self._open.execute(table.select)

    def put(self, table: Table, rows: Iterable[Row]) -> None:
        """Fill a table."""
        marks = ", ".join("?" * table.width)
        self._open.executemany(f"INSERT INTO {table.name} ({table.columns}) VALUES ({marks})", rows)  # noqa: S608

    def state(self) -> StateContents:
        """What people decided; nothing where there is no file."""
        if self._state_path is None or not self._state_path.exists():
            return StateContents()
        with StateFile(self._state_path) as file, file.reading() as connection:
            return _read(connection)

    def put_state(self, contents: StateContents) -> None:
        """Write a state file."""
        if contents.is_empty:
            return
        if self._state_path is None:
            raise ValueError("this project has no state folder for pins, approvals and tokens; name one in `state`")
        with StateFile(self._state_path) as file, file.writing() as connection:
            _write(connection, contents)

    def now(self) -> Moment:
        """The time by this machine's clocks."""
        return Moment(time.time(), time.monotonic())

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._connection is not None  # noqa: S101  (asked for within leaving or entering)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _read(connection: sqlite3.Connection) -> StateContents:
    deeds = connection.execute("SELECT number, body FROM deeds ORDER BY number").fetchall()
    tokens = connection.execute("SELECT hash, holder, used_at, expires_at FROM tokens ORDER BY hash").fetchall()
    return StateContents(
        pins=tuple(every_pin(connection)),
        met=tuple(server for (server,) in connection.execute("SELECT server FROM met ORDER BY server")),
        approvals=tuple(ApprovalRows(connection).all()),
        tokens=tuple((kept, holder, used, ends) for kept, holder, used, ends in tokens),
        logins=tuple(every_login(connection)),
        deeds=tuple((number, read_deed(json.loads(body))) for number, body in deeds),
    )


def _write(connection: sqlite3.Connection, contents: StateContents) -> None:
    for pin in contents.pins:
        put_pin(connection, pin)
    connection.executemany("INSERT INTO met (server) VALUES (?)", [(server,) for server in contents.met])
    for approval in contents.approvals:
        ApprovalRows(connection).put(approval)
    connection.executemany(
        "INSERT INTO tokens (hash, holder, used_at, expires_at) VALUES (?, ?, ?, ?)", contents.tokens
    )
    for login in contents.logins:
        put_login(connection, login)
    bodies = [(json.dumps(asdict(deed)),) for _, deed in contents.deeds]
    connection.executemany("INSERT INTO deeds (body) VALUES (?)", bodies)
