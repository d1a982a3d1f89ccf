"""Deeds in the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from toolgrove.store.state.deeds import Deed, read_deed
from toolgrove.store.state.sqlite.file import StateFile

_MANY = 500


def note(connection: sqlite3.Connection, deed: Deed) -> None:
    """Keep a deed in the open transaction of what was done."""
    connection.execute("INSERT INTO deeds (body) VALUES (?)", (json.dumps(asdict(deed)),))


class SqliteDeeds:
    """The deeds of every process with the same state file."""

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def waiting(self) -> Sequence[tuple[int, Deed]]:
        """The oldest of them; looking makes no file where there is none."""
        if not self._state.path.exists():
            return ()
        with self._state.reading() as connection:
            rows = connection.execute("SELECT number, body FROM deeds ORDER BY number LIMIT ?", (_MANY,)).fetchall()
        return [(number, read_deed(json.loads(body))) for number, body in rows]

    def add(self, deed: Deed) -> None:
        """Keep a deed that stands by itself."""
        with self._state.writing() as connection:
            note(connection, deed)

    def recorded(self, last: int) -> None:
        """Let go of all up to this number."""
        with self._state.writing() as connection:
            connection.execute("DELETE FROM deeds WHERE number <= ?", (last,))
