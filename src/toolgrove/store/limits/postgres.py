"""Rate limits in the project's database, by its own clock: two counters of each holder make a sliding window."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

import anyio
import psycopg

from toolgrove.store.limits.windows import LimitsAway, Mark, Quota
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import session, settings
from toolgrove.store.postgres.presence import ALIVE

_HIT = """
INSERT INTO rate_window AS kept (holder, seconds, began, count, before)
SELECT %(holder)s, %(seconds)s, extract(epoch FROM clock_timestamp()), 1, 0
ON CONFLICT (holder, seconds) DO UPDATE SET (began, count, before) = (
    SELECT
        CASE WHEN past < 1 THEN kept.began WHEN past < 2 THEN kept.began + kept.seconds ELSE now END,
        CASE WHEN past < 1 THEN kept.count ELSE 0 END + 1,
        CASE WHEN past < 1 THEN kept.before WHEN past < 2 THEN kept.count ELSE 0 END
    FROM (SELECT excluded.began AS now, (excluded.began - kept.began) / kept.seconds AS past) AS at
)
WHERE (
    SELECT CASE
        WHEN past < 1 THEN kept.count + floor(kept.before * (1 - past))
        WHEN past < 2 THEN floor(kept.count * (2 - past))
        ELSE 0
    END FROM (SELECT (excluded.began - kept.began) / kept.seconds AS past) AS at
) < %(amount)s
RETURNING (SELECT began FROM rate_window WHERE holder = '' AND seconds = 0)
"""
_MARK = """
INSERT INTO rate_window (holder, seconds, began, count, before) VALUES ('', 0, %s, 0, 0)
ON CONFLICT (holder, seconds) DO UPDATE SET count = 0 RETURNING began
"""
"""The mark is the row of nobody, for no time; its beginning is drawn at random."""
_REPLICAS = f"SELECT count(*) FROM ({ALIVE}) AS alive"  # noqa: S608  our own words
_LOOK = 1.0
"""Seconds between two looks at how many replicas there are."""
_WAIT = """
SELECT greatest(began + seconds - extract(epoch FROM clock_timestamp()), 0.001)::float8
FROM rate_window WHERE holder = %s AND seconds = %s
"""


class PostgresWindows:
    """One connection, and each holder's window in a row of its own."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._turn = anyio.Lock()
        self._replicas, self._looked, self._mark = 1, -math.inf, Mark()
        self._found: str | None = None
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None

    @property
    def replicas(self) -> int:
        """How many processes counted here when it last answered, this one included."""
        return self._replicas

    @property
    def losses(self) -> int:
        """How often this process has found its counts gone."""
        return self._mark.losses

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Take room in all of them, or in none."""
        async with self._turn:
            try:
                is_new = self._connection is None
                try:
                    return await self._admit(quotas)
                except (psycopg.OperationalError, psycopg.InterfaceError, OSError):
                    await self._drop()
                    if is_new:
                        raise
                    return await self._admit(quotas)
            except (psycopg.Error, OSError) as problem:
                await self._drop()
                raise LimitsAway(f"the database of the rate limits cannot be reached: {problem}") from problem

    async def _admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        connection = await self._connected()
        full = None
        async with connection.transaction() as whole:
            for quota in sorted(quotas):  # always in the same order, so that no two wait for each other
                full = await self._full(connection, quota)
                if full is not None:
                    raise psycopg.Rollback(whole)
            if time.monotonic() - self._looked >= _LOOK:
                row = await (await connection.execute(_REPLICAS.encode())).fetchone()
                self._replicas, self._looked = max(1, 0 if row is None else int(row[0])), time.monotonic()
        if full is None:
            if self._found is not None:
                self._mark.see(self._found)  # what is rolled back leaves no mark
            return None
        return quota, full or 0.001

    async def _full(self, connection: psycopg.AsyncConnection[tuple[Any, ...]], quota: Quota) -> float | None:
        named = {"holder": quota.holder, "seconds": quota.rate.seconds, "amount": quota.rate.amount}
        counted = await (await connection.execute(_HIT, named)).fetchone()
        if counted is not None:
            self._found = str(counted[0] if counted[0] is not None else await self._marked(connection))
            return None
        row = await (await connection.execute(_WAIT, (quota.holder, quota.rate.seconds))).fetchone()
        return 0.001 if row is None else float(row[0])

    async def _marked(self, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> float:
        """A new mark, or that of whoever was quicker."""
        row = await (await connection.execute(_MARK, (float(secrets.randbits(48)),))).fetchone()
        return 0.0 if row is None else float(row[0])

    async def _connected(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(autocommit=True, **settings(self._address))
            statement, values = session(self._address)
            await self._connection.execute(statement.encode(), values)
        return self._connection

    async def _drop(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        self._connection = None

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._drop()
