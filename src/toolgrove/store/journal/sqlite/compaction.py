"""Giving room back to the disk: what retention freed is used again first, and much of it is returned."""

from __future__ import annotations

import logging
import sqlite3

log = logging.getLogger("toolgrove.store")
_INCREMENTAL = 2
_STEP = 100
"""Pages that are moved in one go: whoever waits for the writer waits for this as well."""
_FREE = 1_000
_SHARE = 4


def prepare(connection: sqlite3.Connection) -> None:
    """Let a new file shrink later; has to come before the first table."""
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")


def compact(connection: sqlite3.Connection) -> None:
    """Return some pages if more than a part of the file is free; a file from before stays as large as it is."""
    try:
        if _number(connection, "auto_vacuum") != _INCREMENTAL:
            return
        free = _number(connection, "freelist_count")
        if free > _FREE and free > _number(connection, "page_count") // _SHARE:
            connection.executescript(f"PRAGMA incremental_vacuum({_STEP})")  # runs to its end, which execute does not
    except sqlite3.Error as error:  # what was written is safe; there is another time
        log.warning("The store could not be made smaller: %s.", error)


def _number(connection: sqlite3.Connection, name: str) -> int:
    (number,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(number)
