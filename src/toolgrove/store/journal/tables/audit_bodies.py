"""The bodies of audit records: kept within a number of bytes, the oldest dropped first."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.store.audit import Bodies
from toolgrove.store.journal.tables.connection import Connection, insert

_BATCH = 100


class AuditBodies:
    """Works in the writer's open transaction; `filled` is how many bytes all bodies fill by now."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def keep(self, connection: Connection, given: Sequence[tuple[int, Bodies]], filled: int) -> int:
        """Add bodies, make room for them, and give the bytes filled."""
        rows = [(number, *bodies, bodies.size) for number, bodies in given if bodies.size]
        insert(connection, "INSERT INTO audit_body (number, arguments, result, size)", rows)
        filled += sum(row[3] for row in rows)
        while filled > self._limit:
            oldest = connection.execute(
                "SELECT number, size FROM audit_body ORDER BY number LIMIT ?", (_BATCH,)
            ).fetchall()
            if not oldest:
                return 0
            for number, size in oldest:
                if filled <= self._limit:
                    break
                filled, last = filled - size, number
            connection.execute("DELETE FROM audit_body WHERE number <= ?", (last,))
        return filled

    def drop(self, connection: Connection, last: int, filled: int) -> int:
        """Drop those of records that are gone, and give the bytes filled."""
        # A database makes the sum of whole numbers a decimal one, which would not be a number any more in the head.
        query = "SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM audit_body WHERE number <= ?"
        (gone,) = connection.execute(query, (last,)).fetchone()
        filled -= gone
        connection.execute("DELETE FROM audit_body WHERE number <= ?", (last,))
        return filled
