"""How long audit records are kept: old ones go a few at a time, so that no call waits long for it.

They go in the transaction of some other write, and whoever waits for that waits for this too. So a step is bounded both
in records and in bytes: what a record was given and answered can be a thousand times as large as the record, and a
database looks at each page that it frees. Nothing goes before the archive and the copies outside the store have it on
disk.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import (
    AuditArchive,
    Bodies,
    ChainedRecord,
    Notary,
    Place,
    Sealed,
    hash_of,
    is_signed_by,
    read_record,
)
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.store")
DEFAULT_DAYS = 90
"""What a new store keeps unless told otherwise; one from before there was a default keeps all."""
Days = int | Literal["forever"]
_DAY = 86_400.0
_SEEN = 1_000
"""How many records are looked at to tell whether the clock was set."""
_MOST = 200
_MOST_BYTES = 256 * 1024
"""How much leaves in one step, but for a single record that is larger."""
_PAUSE = 60.0
_GROUP = 10_000
"""How many records go into a transaction at most, of which the last has a signature."""


class Pruned(NamedTuple):
    """The newest record that went, and whether a signature of this project covers it."""

    place: Place
    is_ours: bool


class AuditRetention:
    """Takes records out of the store once they are so many days old, after the archive has them."""

    def __init__(
        self,
        clock: Clock,
        days: Days,
        archive: AuditArchive | None = None,
        *,
        notary: Notary | None = None,
        is_shared: bool = False,
    ) -> None:
        """`is_shared` where other processes may take records out as well, each into an archive of its own."""
        self._is_shared = is_shared
        self._clock = clock
        self._seconds = None if days == "forever" else days * _DAY
        self._archive = archive
        self._notary = notary
        self._resting_until = -math.inf
        self._told = False

    def prune(self, connection: Connection, last: int, floor: int, sync: Callable[[], None]) -> Pruned | None:
        """Take some of the oldest out in the open transaction, none after `last`; the newest that went.

        Those up to `floor` are gone already. `sync` makes the copies outside the store last.
        """
        now = self._clock.monotonic()
        if self._seconds is None or now < self._resting_until:
            return None
        query = "SELECT number, timestamp FROM audit WHERE number <= ? ORDER BY number LIMIT ?"
        rows = connection.execute(query, (last, _SEEN)).fetchall()
        wall = self._clock.wall()
        gone = _old([row[1] for row in rows], to_milliseconds(wall - self._seconds), to_milliseconds(wall))
        taken = _fitting(connection, [row[0] for row in rows[:gone]])
        if taken == gone < _SEEN:
            self._resting_until = now + _PAUSE
        if not taken:
            return None
        number = rows[taken - 1][0]
        (line,) = connection.execute("SELECT line FROM audit WHERE number = ?", (number,)).fetchone()
        is_ours = self._is_ours(connection, number, line)
        if not self._archived(connection, number, floor, sync, is_ours=is_ours):
            return None
        connection.execute("DELETE FROM audit WHERE number <= ?", (number,))
        return Pruned(Place(number, hash_of(line)), is_ours)

    def _is_ours(self, connection: Connection, number: int, line: str) -> bool:
        """Whether a signature of this project covers a record: its own, or that of one that follows.

        Whoever can write the store can put records into it. Only what is ours may be signed as the end of an archive.
        """
        later = connection.execute("SELECT line FROM audit WHERE number > ? ORDER BY number LIMIT ?", (number, _GROUP))
        before: ChainedRecord | None = None
        for text in chain([line], (row[0] for row in later)):
            link = read_record(text)
            if self._notary is None or link is None or (before is not None and link.previous != before.place.hash):
                return False
            if link.seal:
                return is_signed_by(link, self._notary.holds)
            before = link
        return False

    def _archived(
        self, connection: Connection, last: int, floor: int, sync: Callable[[], None], *, is_ours: bool
    ) -> bool:
        """Whether the records up to the last one may go: the copies have them, and the archive if there is one."""
        try:
            sync()
        except OSError as error:
            self._resting_until = self._clock.monotonic() + _PAUSE
            log.error("Old audit records stay in the store: a copy cannot be written to disk: %s.", error)
            return False
        if self._archive is None:
            return True
        try:
            if self._is_shared and self._archive.end is not None and self._archive.end.number < floor:
                raise OSError(
                    f"records {self._archive.end.number + 1} to {floor} are in the archive of another process"
                )
            self._archive.add(_records(connection, last), sign=is_ours)
        except OSError as error:
            self._resting_until = self._clock.monotonic() + _PAUSE
            if not self._told:
                why = error.strerror or error
                log.error("Old audit records stay in the store: %s cannot be written: %s.", self._archive.path, why)
            self._told = True
            return False
        self._told = False
        return True


def _fitting(connection: Connection, numbers: Sequence[int]) -> int:
    """How many of these records leave in one step."""
    if not numbers:
        return 0
    query = (
        "SELECT length(line) + coalesce(size, 0) FROM audit LEFT JOIN audit_body USING (number) "
        "WHERE number <= ? ORDER BY number LIMIT ?"
    )
    filled = accumulate(int(row[0]) for row in connection.execute(query, (numbers[-1], _MOST)).fetchall())
    return max(1, sum(size <= _MOST_BYTES for size in filled))


def _old(timestamps: Sequence[str], oldest_kept: str, now: str) -> int:
    """How many of the first records may go.

    The clock may have been set meanwhile. A record from a time to come says nothing of its age. One that is old stands
    behind some that are not if the clock ran ahead for those, or back for this one: more old ones than others decide.
    """
    gone = young = old = 0
    for at, timestamp in enumerate(timestamps, 1):
        if timestamp > now:
            continue
        if timestamp >= oldest_kept:
            young += 1
        else:
            old += young > 0
            if old > young or not young:
                gone = at
    return gone


def _records(connection: Connection, last: int) -> Iterator[tuple[int, Sealed]]:
    query = (
        "SELECT number, line, arguments, result FROM audit LEFT JOIN audit_body USING (number) "
        "WHERE number <= ? ORDER BY number"
    )
    with closing(connection.execute(query, (last,))) as rows:
        for number, line, *texts in rows:
            yield number, Sealed(line, hash_of(line), Bodies(*texts))
