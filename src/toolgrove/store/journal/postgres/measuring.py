"""Measuring a store in PostgreSQL: the size of its tables, and how many audit records are in it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from toolgrove.store.journal.extent import Extent
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import connect, unavailable

_SIZE = b"""
SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = current_schema() AND relkind = 'r'
"""
# Both ends, each found at once; numbers that a marked break passed over count as records.
_RECORDS = b"SELECT (SELECT max(number) FROM audit) - (SELECT min(number) FROM audit) + 1"


def measure(address: DatabaseAddress, archive: Path | None) -> Extent:
    """The extent of a store; how much room its disk has is the database's own affair."""
    with unavailable(address), closing(connect(address)) as connection:
        (size,) = connection.execute(_SIZE).fetchone() or (0,)
        (records,) = connection.execute(_RECORDS).fetchone() or (0,)
    return Extent(
        store_bytes=int(size),
        archive_bytes=archive.stat().st_size if archive is not None and archive.exists() else 0,
        audit_records=int(records or 0),
        disk_free=None,
    )
