"""How long audit records are kept: old ones go a few at a time, so that no call waits long for it."""

from __future__ import annotations

import json
import math
import sqlite3

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import Place
from toolgrove.types import Clock

_DAY = 86_400.0
_BATCH = 1_000
_PAUSE = 60.0


class AuditRetention:
    """Takes records out of the store once they are so many days old; without a number, none."""

    def __init__(self, clock: Clock, days: int | None) -> None:
        self._clock = clock
        self._seconds = None if days is None else days * _DAY
        self._resting_until = -math.inf

    def prune(self, connection: sqlite3.Connection, last: int) -> Place | None:
        """Take the oldest out in the open transaction, none after `last`; the newest that went."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        if self._seconds is None or now < self._resting_until:
            return None
        oldest_kept = to_milliseconds(wall - self._seconds)
        # A record from a clock that ran ahead says nothing about its age; it goes with the next one that does.
        query = "SELECT number, timestamp FROM audit WHERE number <= ? AND timestamp <= ? ORDER BY number LIMIT ?"
        rows = connection.execute(query, (last, to_milliseconds(wall), _BATCH)).fetchall()
        gone = next((at for at in range(len(rows), 0, -1) if rows[at - 1][1] < oldest_kept), 0)
        if gone < _BATCH:
            self._resting_until = now + _PAUSE
        if not gone:
            return None
        number = rows[gone - 1][0]
        (line,) = connection.execute("SELECT line FROM audit WHERE number = ?", (number,)).fetchone()
        connection.execute("DELETE FROM audit WHERE number <= ?", (number,))
        return Place(number, json.loads(line)["hash"])
