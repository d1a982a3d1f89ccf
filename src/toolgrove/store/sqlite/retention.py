"""How long audit records are kept: old ones go a few at a time, so that no call waits long for it."""

from __future__ import annotations

import math
import sqlite3
from itertools import takewhile

from toolgrove.store.audit import hash_of, timestamp
from toolgrove.types import Clock

_DAY = 86_400.0
_BATCH = 1_000
_PAUSE = 60.0


class Retention:
    """Takes records out of the store once they are so many days old; without a number, none."""

    def __init__(self, clock: Clock, days: int | None) -> None:
        self._clock = clock
        self._seconds = None if days is None else days * _DAY
        self._resting_until = -math.inf

    def prune(self, connection: sqlite3.Connection, last: int) -> str | None:
        """Take the oldest out in the open transaction, none after `last`; the hash of the newest that went."""
        now = self._clock.monotonic()
        if self._seconds is None or now < self._resting_until:
            return None
        oldest_kept = timestamp(self._clock.wall() - self._seconds)
        query = "SELECT number, timestamp, line FROM audit WHERE number <= ? ORDER BY number LIMIT ?"
        rows = connection.execute(query, (last, _BATCH)).fetchall()
        gone = list(takewhile(lambda row: row[1] < oldest_kept, rows))
        if len(gone) < _BATCH:
            self._resting_until = now + _PAUSE
        if not gone:
            return None
        connection.execute("DELETE FROM audit WHERE number <= ?", (gone[-1][0],))
        return hash_of(gone[-1][2])
