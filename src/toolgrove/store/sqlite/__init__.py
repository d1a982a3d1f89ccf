"""The embedded store: one SQLite file, one process that writes it."""

from toolgrove.store.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
