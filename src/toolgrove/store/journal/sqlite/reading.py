"""Reading the workspace of a store that another process may be writing: without its lock, and without changing it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.schema import connect_reader, read_as_now
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.loading import load
from toolgrove.tree.saved import SavedWorkspace


def read_workspace(path: Path) -> SavedWorkspace | None:
    """The workspace as it is at this moment; None where the store has none yet."""
    if not path.exists():
        return None
    try:
        with closing(connect_reader(path)) as connection:
            read_as_now(connection)
            connection.execute("BEGIN")  # all of it from the same moment
            head = Head.read(connection)
            return None if head is None else load(connection, head)
    except (Damaged, sqlite3.Error, OSError, KeyError, TypeError, ValueError) as error:
        raise unusable(path, error) from None
