"""Who may write a store: one process at a time, told by a lock that dies with it."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from toolgrove.store.private_file import create_private
from toolgrove.store.unusable import StoreInUse, StoreUnusable


def create(path: Path) -> None:
    """Make the file unless it is there, and see that it can be read and written."""
    create_private(path)
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


class Owner:
    """Holds an empty SQLite file beside the store locked: portable, and never left behind by a crash."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + "-lock")
        create(path)
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode=MEMORY")
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            self._connection.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StoreInUse(
                    where=store,
                    problem="is in use by another process",
                    advice="Stop that one first, or have both use a gateway ('toolgrove serve'), or give this one "
                    "a store of its own (workspace.store).",
                ) from None
            raise StoreUnusable(
                where=store,
                problem=f"cannot be locked: {error}",
                advice=f"Check the disk, and that {path.name} beside it is an empty file of yours.",
            ) from None

    def release(self) -> None:
        """Let another process have it."""
        self._connection.close()


def is_owned(store: Path) -> bool:
    """Whether a process has it open; a look that is over at once."""
    path = store.with_name(store.name + "-lock")
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    return False
