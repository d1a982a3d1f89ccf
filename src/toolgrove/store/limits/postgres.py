"""Rate limits in the project's database, by its own clock: two counters of each holder make a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import psycopg

from toolgrove.store.limits.windows import LimitsAway, Quota
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import session, settings

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
RETURNING 1
"""
_WAIT = """
SELECT greatest(began + seconds - extract(epoch FROM clock_timestamp()), 0.001)::float8
FROM rate_window WHERE holder = %s AND seconds = %s
"""


class PostgresWindows:
    """One connection, and each holder's window in a row of its own."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._turn = anyio.Lock()
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Take room in all of them, or in none."""
        async with self._turn:
            try:
                connection = await self._connected()
                async with connection.transaction() as whole:
                    for quota in sorted(quotas):  # always in the same order, so that no two wait for each other
                        full = await self._full(connection, quota)
                        if full is not None:
                            raise psycopg.Rollback(whole)
                    return None
                return quota, full or 0.001
            except (psycopg.Error, OSError) as problem:
                await self._drop()
                raise LimitsAway(f"the database of the rate limits cannot be reached: {problem}") from problem

    async def _full(self, connection: psycopg.AsyncConnection[tuple[Any, ...]], quota: Quota) -> float | None:
        named = {"holder": quota.holder, "seconds": quota.rate.seconds, "amount": quota.rate.amount}
        if await (await connection.execute(_HIT, named)).fetchone() is not None:
            return None
        row = await (await connection.execute(_WAIT, (quota.holder, quota.rate.seconds))).fetchone()
        return 0.001 if row is None else float(row[0])

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
