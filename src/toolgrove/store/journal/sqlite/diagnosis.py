"""What an error of SQLite means to the one who runs the project."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from toolgrove.store.unusable import StoreUnusable

_RESTORE = "Restore a backup with 'toolgrove restore FILE', or move the file and its -wal away to begin anew."


def unusable(path: Path, error: BaseException) -> StoreUnusable:
    """The error as one line that says what to do."""
    if isinstance(error, StoreUnusable):
        return error
    if isinstance(error, OSError):
        advice = "Check the path in workspace.store, and who owns it."
        return StoreUnusable(where=path, problem=f"cannot be opened: {error.strerror}", advice=advice)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        advice = "Choose another path in workspace.store."
        return StoreUnusable(where=path, problem="is not a Toolgrove store", advice=advice)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
        advice = "Check who owns the file and its folder, and the disk."
        return StoreUnusable(where=path, problem=f"cannot be opened: {error}", advice=advice)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnusable(where=path, problem="is locked by another program", advice="Close that one, and retry.")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnusable(where=path, problem="has no room left on its disk", advice="Free some space, and retry.")
    return StoreUnusable(where=path, problem=f"is damaged: {error}", advice=_RESTORE)
