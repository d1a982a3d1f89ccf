"""Idempotency records in their table: a lifetime, and a quota for each agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toolgrove.store.journal.forgotten_keys import ForgottenKeys
from toolgrove.store.journal.journal import IdempotencyRecord, KeyLimits
from toolgrove.store.journal.tables.connection import Connection, insert
from toolgrove.store.journal.tables.encoding import checksum, decode_all, key
from toolgrove.types import Clock

_SWEEPS = 1_440
"""How often in a lifetime the expired ones are taken out: a few at a time, so that no call waits long for it."""
_TRIM = (
    "DELETE FROM idempotency WHERE agent = ? AND number <= "
    "(SELECT number FROM idempotency WHERE agent = ? ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
_EXPIRE = (
    "DELETE FROM idempotency WHERE number < "
    "coalesce((SELECT number FROM idempotency WHERE at >= ? ORDER BY number LIMIT 1), 9223372036854775807)"
)


class IdempotencyKeys:
    """Writes and finds records.

    Where one process has the store, its time runs evenly, whatever happens to the wall clock meanwhile. Where several
    share it, the time is the database's, since their own clocks need not agree: `now` is the expression that asks for
    it, and whoever writes asks by `used` first, in the transaction that keeps the others away.
    """

    def __init__(self, connection: Connection, clock: Clock, limits: KeyLimits, *, now: str | None = None) -> None:
        self._clock = clock
        self._asked_time = now
        self._per_agent = limits.per_agent
        self._lifetime = limits.lifetime
        newest = connection.execute("SELECT at FROM idempotency ORDER BY number DESC LIMIT 1").fetchone()
        self._start = max(clock.wall(), newest[0] if newest else 0.0) - clock.monotonic()
        self._heard: float | None = None
        self._swept = None if now is not None else self._own_time()
        self._forgotten = ForgottenKeys(limits)
        self._counts: Counter[str] = Counter()
        self._counts.update(dict(connection.execute("SELECT agent, count(*) FROM idempotency GROUP BY agent")))

    def _own_time(self) -> float:
        return self._start + self._clock.monotonic()

    @property
    def _time(self) -> tuple[str, list[float]]:
        """An expression for the time that counts, and the values in it."""
        return ("?", [self._own_time()]) if self._asked_time is None else (self._asked_time, [])

    def keep(self, connection: Connection, kept: Sequence[tuple[IdempotencyRecord, str]]) -> None:
        """Put records into the open transaction, and take the old ones out."""
        now = self._own_time() if self._heard is None else self._heard
        if self._swept is None:
            self._swept = now
        elif now - self._swept > self._lifetime / _SWEEPS:
            self._expire(connection, now)
        rows = [(key(record.agent), key(record.key), now, body, checksum(body)) for record, body in kept]
        insert(connection, "INSERT OR REPLACE INTO idempotency (agent, key, at, body, crc)", rows)
        self._counts.update(row[0] for row in rows)
        for agent in {row[0] for row in rows}:
            # A tenth of slack, so that looking for the oldest is rare.
            if self._counts[agent] > self._per_agent + self._per_agent // 10:
                self._expire(connection, now)  # what has expired is not forgotten early
                if connection.execute(_TRIM, (agent, agent, self._per_agent)).rowcount:
                    self._forgotten.note(agent)
                count = "SELECT count(*) FROM idempotency WHERE agent = ?"
                self._counts[agent] = connection.execute(count, (agent,)).fetchone()[0]

    def _expire(self, connection: Connection, now: float) -> None:
        connection.execute(_EXPIRE, (now - self._lifetime,))
        self._swept = now

    def used(self, connection: Connection, wanted: Sequence[IdempotencyRecord]) -> set[tuple[str, str]]:
        """Those of some agents and keys that another process has used meanwhile."""
        if not wanted:
            return set()
        places = ", ".join(["(?, ?)"] * len(wanted))
        time, given = self._time
        query = (
            f"SELECT now.at, idempotency.at, body, crc FROM (SELECT {time} AS at) AS now "  # noqa: S608
            f"LEFT JOIN idempotency ON (agent, key) IN (VALUES {places})"
        )
        names = [key(name) for one in wanted for name in (one.agent, one.key)]
        rows = connection.execute(query, [*given, *names]).fetchall()
        self._heard = rows[0][0]
        good = [row[2:] for row in rows if row[1] is not None and row[0] - row[1] <= self._lifetime]
        return {(owner, held) for owner, held, *_ in decode_all("idempotency", good)}

    def find(self, connection: Connection, agent: str, name: str) -> IdempotencyRecord | None:
        """The record under a key, unless it has expired."""
        time, given = self._time
        query = f"SELECT {time}, at, body, crc FROM idempotency WHERE agent = ? AND key = ?"  # noqa: S608
        row = connection.execute(query, (*given, key(agent), key(name))).fetchone()
        if row is None or row[0] - row[1] > self._lifetime:
            return None
        for owner, held, request, result in decode_all("idempotency", [row[2:]]):
            return IdempotencyRecord(agent=owner, key=held, request=request, result=result)
        return None
