"""Who holds the head: a process that fell silent in the middle of a transaction must not hold up the others.

PostgreSQL ends a session that is idle in a transaction, but not one that has sent a part of its statements and whose
machine or network is gone then.
"""

from __future__ import annotations

from toolgrove.store.journal.tables.connection import Connection

SILENT = 1.5
"""Seconds in a transaction after which one that the server waits for counts as silent."""
_END = (
    "SELECT count(pg_terminate_backend(holder.pid)) FROM pg_locks AS held JOIN pg_stat_activity AS holder USING (pid) "
    "WHERE held.relation = 'head'::regclass AND held.granted AND held.pid <> pg_backend_pid() "
    "AND holder.wait_event = 'ClientRead' AND holder.usename = current_user "
    "AND holder.application_name = current_setting('application_name') "
    "AND holder.xact_start < clock_timestamp() - make_interval(secs => ?)"
)


def end_silent_holders(connection: Connection) -> bool:
    """End the sessions of processes like this one that hold the head and say nothing; whether there were any."""
    (ended,) = connection.execute(_END, (SILENT,)).fetchone()
    return int(ended) > 0
