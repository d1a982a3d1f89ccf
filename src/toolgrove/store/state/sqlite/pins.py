"""Pins in the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from toolgrove.errors import PinNotFound
from toolgrove.store.state.pins import FIRST_USE, Pin, accepted, pin_deed, refused, seen, unseen, withdrawn
from toolgrove.store.state.sqlite.deeds import note
from toolgrove.store.state.sqlite.file import StateFile
from toolgrove.types import Clock, SystemClock

_COLUMNS = (
    "server, own_name, hash, definition, pinned_at, pinned_by, seen_hash, seen_definition, seen_at, "
    "refused_hash, refused_by"
)


class SqlitePins:
    """Pins that every process with the same state file shares."""

    def __init__(self, state: StateFile, clock: Clock | None = None) -> None:
        self._state = state
        self._clock = clock or SystemClock()

    def of(self, server: str) -> Mapping[str, Pin]:
        """The pins of a server by its own tool names."""
        with self._state.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM pins WHERE server = ?", (server,)).fetchall()  # noqa: S608
        return {row[1]: _pin(row) for row in rows}

    def list(self) -> Sequence[Pin]:
        """Every pin, by server and name."""
        with self._state.reading() as connection:
            return every_pin(connection)

    def knows(self, server: str) -> bool:
        """Whether the server was ever met."""
        with self._state.reading() as connection:
            return connection.execute("SELECT 1 FROM met WHERE server = ?", (server,)).fetchone() is not None

    def met(self, server: str) -> None:
        """Remember that the server gave a list."""
        with self._state.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO met (server) VALUES (?)", (server,))

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""
        now = self._clock.wall()
        pin = Pin(server=server, own_name=own_name, hash=hash, definition=definition, pinned_at=now, pinned_by=by)
        with self._state.writing(durable=False) as connection:  # what a power cut takes is pinned again
            put_pin(connection, pin)

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, or is the first, until someone looks at it."""
        with self._state.writing(durable=False) as connection:
            known = _find(connection, server, own_name) or unseen(server, own_name)
            pin = seen(known, hash, definition, self._clock.wall())
            if pin.seen_hash != known.seen_hash:
                put_pin(connection, pin)

    def withdraw(self, server: str, own_name: str) -> None:
        """Take an acceptance back that no person gave; the definition waits."""
        with self._state.writing() as connection:
            put_pin(connection, withdrawn(_get(connection, server, own_name), self._clock.wall()))

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""
        now = self._clock.wall()
        with self._state.writing() as connection:
            pin = accepted(_get(connection, server, own_name), hash, by, now)
            put_pin(connection, pin)
            note(connection, pin_deed("accepted", pin, by=by, at=now))
        return pin

    def refuse(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Keep the definition last seen out, provided that it is the one with this hash."""
        with self._state.writing() as connection:
            pin = refused(_get(connection, server, own_name), hash, by)
            put_pin(connection, pin)
            note(connection, pin_deed("refused", pin, by=by, at=self._clock.wall()))
        return pin

    def forget(self, server: str, own_name: str, *, by: str = "") -> None:
        """Drop a pin: the next definition waits for a person."""
        with self._state.writing() as connection:
            pin = _get(connection, server, own_name)
            note(connection, pin_deed("forgotten", pin, by=by, at=self._clock.wall()))
            connection.execute("DELETE FROM pins WHERE server = ? AND own_name = ?", (server, own_name))


def _find(connection: sqlite3.Connection, server: str, own_name: str) -> Pin | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM pins WHERE server = ? AND own_name = ?",  # noqa: S608
        (server, own_name),
    ).fetchone()
    return None if row is None else _pin(row)


def _get(connection: sqlite3.Connection, server: str, own_name: str) -> Pin:
    pin = _find(connection, server, own_name)
    if pin is None:
        known = [f"{pin.server}/{pin.own_name}" for pin in every_pin(connection)]
        raise PinNotFound(server=server, own_name=own_name, known=known)
    return pin


def every_pin(connection: sqlite3.Connection) -> Sequence[Pin]:
    """Every pin, by server and name."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM pins ORDER BY server, own_name").fetchall()  # noqa: S608
    return [_pin(row) for row in rows]


def put_pin(connection: sqlite3.Connection, pin: Pin) -> None:
    """Keep a pin in the place of the one before."""
    connection.execute(
        f"INSERT OR REPLACE INTO pins ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            pin.server,
            pin.own_name,
            pin.hash,
            json.dumps(pin.definition),
            pin.pinned_at,
            pin.pinned_by,
            pin.seen_hash,
            None if pin.seen_definition is None else json.dumps(pin.seen_definition),
            pin.seen_at,
            pin.refused_hash,
            pin.refused_by,
        ),
    )


def _pin(row: Sequence[Any]) -> Pin:
    server, own_name, hash, definition, pinned_at, pinned_by, seen_hash, seen_definition, seen_at = row[:9]
    refused_hash, refused_by = row[9:]
    return Pin(
        server=server,
        own_name=own_name,
        hash=hash,
        definition=json.loads(definition),
        pinned_at=pinned_at,
        pinned_by=pinned_by,
        seen_hash=seen_hash,
        seen_definition=None if seen_definition is None else json.loads(seen_definition),
        seen_at=seen_at,
        refused_hash=refused_hash,
        refused_by=refused_by,
    )
