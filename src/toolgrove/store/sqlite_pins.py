"""Pins in the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from toolgrove.store.pins import FIRST_USE, Pin, PinNotFound, accepted, seen
from toolgrove.store.state import StateFile
from toolgrove.types import Clock, SystemClock

_COLUMNS = "server, own_name, hash, definition, pinned_at, pinned_by, seen_hash, seen_definition, seen_at"


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
            return _all(connection)

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""
        now = self._clock.wall()
        pin = Pin(server=server, own_name=own_name, hash=hash, definition=definition, pinned_at=now, pinned_by=by)
        with self._state.writing(durable=False) as connection:  # what a power cut takes is pinned again
            _put(connection, pin)

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, until someone looks at it."""
        with self._state.writing(durable=False) as connection:
            known = _get(connection, server, own_name)
            pin = seen(known, hash, definition, self._clock.wall())
            if pin.seen_hash != known.seen_hash:
                _put(connection, pin)

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""
        with self._state.writing() as connection:
            pin = accepted(_get(connection, server, own_name), hash, by, self._clock.wall())
            _put(connection, pin)
        return pin

    def forget(self, server: str, own_name: str) -> None:
        """Drop a pin: the next definition counts as first use."""
        with self._state.writing() as connection:
            _get(connection, server, own_name)
            connection.execute("DELETE FROM pins WHERE server = ? AND own_name = ?", (server, own_name))


def _get(connection: sqlite3.Connection, server: str, own_name: str) -> Pin:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM pins WHERE server = ? AND own_name = ?",  # noqa: S608
        (server, own_name),
    ).fetchone()
    if row is None:
        known = [f"{pin.server}/{pin.own_name}" for pin in _all(connection)]
        raise PinNotFound(server=server, own_name=own_name, known=known)
    return _pin(row)


def _all(connection: sqlite3.Connection) -> Sequence[Pin]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM pins ORDER BY server, own_name").fetchall()  # noqa: S608
    return [_pin(row) for row in rows]


def _put(connection: sqlite3.Connection, pin: Pin) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO pins ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
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
        ),
    )


def _pin(row: Sequence[Any]) -> Pin:
    server, own_name, hash, definition, pinned_at, pinned_by, seen_hash, seen_definition, seen_at = row
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
    )
