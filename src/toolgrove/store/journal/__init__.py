"""The journal: what calls leave behind, kept in memory or in SQLite.

- ``forgotten_keys``: telling of idempotency keys that had to go early
- ``journal``: the protocol, and what an entry holds
- ``memory``: the journal of a process that may forget
- ``sqlite``: the journal in a file
"""

from toolgrove.store.journal.journal import (
    RECORD_BYTES,
    Behind,
    Gone,
    IdempotencyRecord,
    Journal,
    JournalEntry,
    KeyLimits,
    Stalled,
    Trouble,
)
from toolgrove.store.journal.memory import MemoryJournal
from toolgrove.store.journal.sqlite import SqliteAuditLog, SqliteJournal

__all__ = [
    "RECORD_BYTES",
    "Behind",
    "Gone",
    "IdempotencyRecord",
    "Journal",
    "JournalEntry",
    "KeyLimits",
    "MemoryJournal",
    "SqliteAuditLog",
    "SqliteJournal",
    "Stalled",
    "Trouble",
]
