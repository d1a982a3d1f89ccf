"""Pins in the project's database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolgrove.errors import PinNotFound
from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.pins import FIRST_USE, Pin, accepted, pin_deed, refused, seen, unseen, withdrawn
from toolgrove.store.state.postgres.copies import Copy
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.deeds import note
from toolgrove.types import Clock

Kept = tuple[dict[tuple[str, str], Pin], frozenset[str]]
"""Every pin by server and own name, and the servers that were met."""


class PostgresPins:
    """Pins that every replica shares."""

    def __init__(self, state: StateDatabase, clock: Clock | None = None) -> None:
        self._clock = clock or state.clock
        self.copy: Copy[Kept] = Copy(state, "pins", read_pins)

    def of(self, server: str) -> Mapping[str, Pin]:
        """The pins of a server by its own tool names."""
        return {name: pin for (whose, name), pin in self.copy.latest()[0].items() if whose == server}

    def list(self) -> Sequence[Pin]:
        """Every pin, by server and name."""
        return _sorted(self.copy.latest()[0])

    def knows(self, server: str) -> bool:
        """Whether the server was ever met."""
        return server in self.copy.latest()[1]

    def met(self, server: str) -> None:
        """Remember that the server gave a list."""
        with self.copy.changing() as connection:
            connection.execute("INSERT INTO met (server) VALUES (%s) ON CONFLICT DO NOTHING", (server,))

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""
        now = self._clock.wall()
        pin = Pin(server=server, own_name=own_name, hash=hash, definition=definition, pinned_at=now, pinned_by=by)
        with self.copy.changing() as connection:
            put_pin(connection, pin)

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, or is the first, until someone looks at it."""
        with self.copy.changing() as connection:
            known = _find(connection, server, own_name) or unseen(server, own_name)
            pin = seen(known, hash, definition, self._clock.wall())
            if pin.seen_hash != known.seen_hash:
                put_pin(connection, pin)

    def withdraw(self, server: str, own_name: str) -> None:
        """Take an acceptance back that no person gave; the definition waits."""
        with self.copy.changing() as connection:
            put_pin(connection, withdrawn(_get(connection, server, own_name), self._clock.wall()))

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""
        now = self._clock.wall()
        with self.copy.changing() as connection:
            pin = accepted(_get(connection, server, own_name), hash, by, now)
            put_pin(connection, pin)
            note(connection, pin_deed("accepted", pin, by=by, at=now))
        return pin

    def refuse(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Keep the definition last seen out, provided that it is the one with this hash."""
        with self.copy.changing() as connection:
            pin = refused(_get(connection, server, own_name), hash, by)
            put_pin(connection, pin)
            note(connection, pin_deed("refused", pin, by=by, at=self._clock.wall()))
        return pin

    def forget(self, server: str, own_name: str, *, by: str = "") -> None:
        """Drop a pin: the next definition waits for a person."""
        with self.copy.changing() as connection:
            pin = _get(connection, server, own_name)
            note(connection, pin_deed("forgotten", pin, by=by, at=self._clock.wall()))
            connection.execute("DELETE FROM pins WHERE server = %s AND own_name = %s", (server, _text(own_name)))


def read_pins(connection: Connection) -> Kept:
    """Every pin, and the servers that were met."""
    pins = [Pin(**json.loads(body)) for (body,) in connection.execute("SELECT body FROM pins")]
    met = frozenset(server for (server,) in connection.execute("SELECT server FROM met"))
    return {(pin.server, pin.own_name): pin for pin in pins}, met


def _sorted(pins: Mapping[tuple[str, str], Pin]) -> list[Pin]:
    return [pins[key] for key in sorted(pins)]


def _find(connection: Connection, server: str, own_name: str) -> Pin | None:
    row = connection.execute(
        "SELECT body FROM pins WHERE server = %s AND own_name = %s", (server, _text(own_name))
    ).fetchone()
    return None if row is None else Pin(**json.loads(row[0]))


def _get(connection: Connection, server: str, own_name: str) -> Pin:
    pin = _find(connection, server, own_name)
    if pin is None:
        known = [f"{pin.server}/{pin.own_name}" for pin in _sorted(read_pins(connection)[0])]
        raise PinNotFound(server=server, own_name=own_name, known=known)
    return pin


def put_pin(connection: Connection, pin: Pin) -> None:
    """Keep a pin in the place of the one before."""
    connection.execute(
        "INSERT INTO pins (server, own_name, body) VALUES (%s, %s, %s) "
        "ON CONFLICT (server, own_name) DO UPDATE SET body = excluded.body",
        (pin.server, _text(pin.own_name), json.dumps(asdict(pin))),
    )


def _text(name: str) -> str:
    """A name that strangers gave, in ASCII: PostgreSQL refuses some characters."""
    return json.dumps(name)
