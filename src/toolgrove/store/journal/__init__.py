"""The journal: what calls leave behind, kept in memory, in SQLite or in PostgreSQL.

- ``extent``: how much room a store takes, and when to warn
- ``forgotten_keys``: telling of idempotency keys that had to go early
- ``journal``: the protocol, and what an entry holds
- ``news``: what other processes wrote
- ``memory``: the journal of a process that may forget
- ``tables``: the journal as rows, whichever database holds them
- ``sqlite``: the journal in a file
- ``postgres``: the journal in a database that several processes share
"""

from importlib import import_module
from typing import TYPE_CHECKING

from toolgrove.store.journal.extent import Extent, Marks
from toolgrove.store.journal.journal import (
    RECORD_BYTES,
    Behind,
    ClaimLost,
    Diverged,
    Gone,
    IdempotencyRecord,
    Journal,
    JournalEntry,
    KeyLimits,
    KeyTaken,
    Outdated,
    Stalled,
    Trouble,
)
from toolgrove.store.journal.memory import MemoryJournal
from toolgrove.store.journal.news import Deed, News

if TYPE_CHECKING:
    from toolgrove.store.journal.sqlite import SqliteAuditLog, SqliteJournal, measure, read_workspace

__all__ = [
    "RECORD_BYTES",
    "Behind",
    "ClaimLost",
    "Deed",
    "Diverged",
    "Extent",
    "Gone",
    "IdempotencyRecord",
    "Journal",
    "JournalEntry",
    "KeyLimits",
    "KeyTaken",
    "Marks",
    "MemoryJournal",
    "News",
    "Outdated",
    "SqliteAuditLog",
    "SqliteJournal",
    "Stalled",
    "Trouble",
    "measure",
    "read_workspace",
]


def __getattr__(name: str) -> object:
    """A name of the journal in a file when it is first wanted: a project in memory has none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.sqlite"), name)
