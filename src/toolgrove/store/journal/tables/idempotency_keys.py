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
    """Writes and finds records; its time runs evenly, whatever happens to the wall clock meanwhile."""

    def __init__(self, connection: Connection, clock: Clock, limits: KeyLimits) -> None:
        self._clock = clock
        self._per_agent = limits.per_agent
        self._lifetime = limits.lifetime
        newest = connection.execute("SELECT at FROM idempotency ORDER BY number DESC LIMIT 1").fetchone()
        self._start = max(clock.wall(), newest[0] if newest else 0.0) - clock.monotonic()
        self._swept = self._now()
        self._forgotten = ForgottenKeys(limits)
        self._counts: Counter[str] = Counter()
        self._counts.update(dict(connection.execute("SELECT agent, count(*) FROM idempotency GROUP BY agent")))

    def _now(self) -> float:
        return self._start + self._clock.monotonic()

    def keep(self, connection: Connection, kept: Sequence[tuple[IdempotencyRecord, str]]) -> None:
        """Put records into the open transaction, and take the old ones out."""
        now = self._now()
        if now - self._swept > self._lifetime / _SWEEPS:
            connection.execute(_EXPIRE, (now - self._lifetime,))
            self._swept = now
        rows = [(key(record.agent), key(record.key), now, body, checksum(body)) for record, body in kept]
        insert(connection, "INSERT OR REPLACE INTO idempotency (agent, key, at, body, crc)", rows)
        self._counts.update(row[0] for row in rows)
        for agent in {row[0] for row in rows}:
            # A tenth of slack, so that looking for the oldest is rare.
            if self._counts[agent] > self._per_agent + self._per_agent // 10:
                if connection.execute(_TRIM, (agent, agent, self._per_agent)).rowcount:
                    self._forgotten.note(agent)
                count = "SELECT count(*) FROM idempotency WHERE agent = ?"
                self._counts[agent] = connection.execute(count, (agent,)).fetchone()[0]

    def used(self, connection: Connection, wanted: Sequence[IdempotencyRecord]) -> set[tuple[str, str]]:
        """Those of some agents and keys that another process has used meanwhile."""
        if not wanted:
            return set()
        places = ", ".join(["(?, ?)"] * len(wanted))
        query = f"SELECT at, body, crc FROM idempotency WHERE (agent, key) IN (VALUES {places})"  # noqa: S608
        names = [key(name) for one in wanted for name in (one.agent, one.key)]
        rows = connection.execute(query, names).fetchall()
        good = [row[1:] for row in rows if self._now() - row[0] <= self._lifetime]
        return {(owner, held) for owner, held, *_ in decode_all("idempotency", good)}

    def find(self, connection: Connection, agent: str, name: str) -> IdempotencyRecord | None:
        """The record under a key, unless it has expired."""
        query = "SELECT at, body, crc FROM idempotency WHERE agent = ? AND key = ?"
        row = connection.execute(query, (key(agent), key(name))).fetchone()
        if row is None or self._now() - row[0] > self._lifetime:
            return None
        for owner, held, request, result in decode_all("idempotency", [row[1:]]):
            return IdempotencyRecord(agent=owner, key=held, request=request, result=result)
        return None
