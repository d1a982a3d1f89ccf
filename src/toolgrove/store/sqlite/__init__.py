"""The embedded store: one SQLite file, one process that writes it."""

from toolgrove.store.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.sqlite.journal import SqliteJournal

__all__ = ["SqliteAuditLog", "SqliteJournal"]
