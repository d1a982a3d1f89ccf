"""Who may write a store: one process at a time, told by a lock that dies with it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from toolgrove.store.unusable import StoreUnusable


class Owner:
    """Holds an empty SQLite file beside the store locked: portable, and never left behind by a crash."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + "-lock")
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode=MEMORY")
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            self._connection.close()
            raise StoreUnusable(
                where=store,
                problem="is in use by another process",
                advice="Stop that one first, or give this one a store of its own (workspace.store).",
            ) from None

    def release(self) -> None:
        """Let another process have it."""
        self._connection.close()
