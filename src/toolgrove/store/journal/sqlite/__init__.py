"""The embedded store: one SQLite file, one process that writes it.

- ``journal``: the journal that calls append to
- ``ledger``: a group of entries in one transaction
- ``opening``: taking a store, checking it and reading it
- ``owner``: the lock that lets one process write
- ``reading``: the workspace, read beside the process that writes it
- ``measuring``: how much room the files take
- ``schema``: the tables, their version, and connections to them
- ``audit_log``: the audit records in their table, asked for and proved
- ``compaction``: giving the room of old records back to the disk
- ``diagnosis``: what an error of SQLite means to the operator
"""

from toolgrove.store.journal.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.journal.sqlite.journal import SqliteJournal
from toolgrove.store.journal.sqlite.measuring import measure
from toolgrove.store.journal.sqlite.reading import read_workspace

__all__ = ["SqliteAuditLog", "SqliteJournal", "measure", "read_workspace"]
