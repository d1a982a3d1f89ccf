"""Measuring a store: the size of its files, and how many audit records are in it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from toolgrove.store.journal.extent import Extent
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.schema import connect_reader

# Both ends, each found at once; numbers that a marked break passed over count as records.
_RECORDS = "SELECT (SELECT max(number) FROM audit) - (SELECT min(number) FROM audit) + 1"


def measure(path: Path, archive: Path | None) -> Extent:
    """The extent of a store, also of one that another process writes."""
    try:
        with closing(connect_reader(path)) as connection:
            records = connection.execute(_RECORDS).fetchone()[0]
    except sqlite3.Error as error:
        raise unusable(path, error) from None
    wal = path.with_name(f"{path.name}-wal")
    return Extent(
        store_bytes=_size(path) + _size(wal),
        archive_bytes=0 if archive is None else _size(archive),
        audit_records=records or 0,
        disk_free=shutil.disk_usage(path.parent).free,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
