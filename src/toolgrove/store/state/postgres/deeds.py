"""Deeds in the project's database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.deeds import Deed, read_deed
from toolgrove.store.state.postgres.database import StateDatabase

_MANY = 500


def note(connection: Connection, deed: Deed) -> None:
    """Keep a deed in the open transaction of what was done; one writer at a time numbers them in order."""
    connection.execute("INSERT INTO deeds (body) VALUES (%s)", (json.dumps(asdict(deed)),))


class PostgresDeeds:
    """The deeds of every replica."""

    def __init__(self, state: StateDatabase) -> None:
        self._state = state

    def waiting(self) -> Sequence[tuple[int, Deed]]:
        """The oldest of them; only one replica at a time puts them on record."""
        if not self._state.leads("deeds"):
            return ()
        with self._state.reading() as connection:
            rows = connection.execute("SELECT number, body FROM deeds ORDER BY number LIMIT %s", (_MANY,)).fetchall()
        return [(number, read_deed(json.loads(body))) for number, body in rows]

    def add(self, deed: Deed) -> None:
        """Keep a deed that stands by itself."""
        with self._state.writing("deeds") as connection:
            note(connection, deed)

    def recorded(self, last: int) -> None:
        """Let go of all up to this number."""
        with self._state.writing("deeds") as connection:
            connection.execute("DELETE FROM deeds WHERE number <= %s", (last,))
