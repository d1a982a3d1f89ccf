"""Copies of the audit records outside the store, such as a log file; late ones are made up for."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from toolgrove.store.audit import AuditSink, JsonLines, Sealed, close_logs

log = logging.getLogger("toolgrove.store")


class Copies:
    """Hands every record to every sink, in order; the store stays the original."""

    def __init__(self, sinks: Sequence[AuditSink], last: int) -> None:
        self._sinks = sinks
        self._copied = [sink.last()[0] if isinstance(sink, JsonLines) else last for sink in sinks]

    def least(self, last: int) -> int:
        """The last record that every sink has, of those up to the last one."""
        return min(self._copied, default=last)

    def update(self, connection: sqlite3.Connection, last: int) -> None:
        """Bring every sink up to the last record; one that cannot write is tried again next time."""
        for at, sink in enumerate(self._sinks):
            if self._copied[at] < last:
                self._catch_up(connection, at, sink)

    def _catch_up(self, connection: sqlite3.Connection, at: int, sink: AuditSink) -> None:
        query = "SELECT number, line FROM audit WHERE number > ? ORDER BY number"
        try:
            with closing(connection.execute(query, (self._copied[at],))) as rows:
                for number, line in rows:
                    sink.write(Sealed(line, json.loads(line)["hash"]))
                    self._copied[at] = number
        except Exception:  # the entries are kept: whatever befalls a copy, nobody may be told otherwise
            log.exception("a copy of the audit log cannot be written; the store has the records")

    def close(self) -> None:
        """Close the files."""
        close_logs(self._sinks)
