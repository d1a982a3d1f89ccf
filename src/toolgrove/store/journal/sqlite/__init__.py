"""The embedded store: one SQLite file, one process that writes it.

- ``journal``: the journal that calls append to
- ``writer``: the thread that commits what has come in meanwhile as one group
- ``ledger``: a group of entries in one transaction
- ``rows``: an entry as the rows that it becomes
- ``loading``: the workspace, read back from its rows
- ``opening``: taking a store, checking it and reading it
- ``owner``: the lock that lets one process write
- ``measuring``: how much room the files take
- ``schema``: the tables, their version, and connections to them
- ``stall``: a store that somebody else holds, and one wait for all who want to write
- ``head_row``: the one row that says where a store stands
- ``idempotency_keys``: idempotency records in their table
- ``unfinished_calls``: calls that began to change something outside, in their table
- ``audit_log``: the audit records in their table, asked for and proved
- ``audit_bodies``: the arguments and results beside the records
- ``audit_copies``: copies of the audit records outside the store
- ``audit_retention``: how long audit records are kept
- ``compaction``: giving the room of old records back to the disk
- ``encoding``: values as text with a checksum, and inserting them
- ``diagnosis``: what an error of SQLite means to the operator
"""

from toolgrove.store.journal.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.journal.sqlite.journal import SqliteJournal
from toolgrove.store.journal.sqlite.measuring import measure

__all__ = ["SqliteAuditLog", "SqliteJournal", "measure"]
