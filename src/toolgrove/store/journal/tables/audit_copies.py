"""Copies of the audit records outside the store, such as a log file; one that fell behind catches up."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from toolgrove.store.audit import AuditSink, Bodies, JsonLines, Place, Sealed, close_logs, hash_of
from toolgrove.store.journal.tables.connection import Connection

log = logging.getLogger("toolgrove.store")
_CHUNK = 1_000


class AuditCopies:
    """Hands every record to every sink, in order; the store stays the original."""

    def __init__(self, sinks: Sequence[AuditSink], last: int) -> None:
        self._sinks = sinks
        self._ends = [sink.tail().place if isinstance(sink, JsonLines) else None for sink in sinks]
        self._copied = [last if end is None else end.number for end in self._ends]

    @property
    def ends(self) -> list[Place]:
        """Where the logs among the sinks end."""
        return [end for end in self._ends if end is not None]

    def pass_over(self, missed: Collection[Place], last: int) -> None:
        """Let logs whose end the store does not hold go on after `last`, with the record that marks the break."""
        self._copied = [last if end in missed else copied for end, copied in zip(self._ends, self._copied, strict=True)]

    def least(self, last: int) -> int:
        """The last record that every sink has, of those up to the last one."""
        return min(self._copied, default=last)

    def update(self, connection: Connection, last: int) -> None:
        """Bring every sink up to the last record; one that cannot write is tried again next time."""
        for at, sink in enumerate(self._sinks):
            if self._copied[at] < last:
                self._catch_up(connection, at, sink)

    def _catch_up(self, connection: Connection, at: int, sink: AuditSink) -> None:
        query = (
            "SELECT number, line, arguments, result FROM audit LEFT JOIN audit_body USING (number) "
            "WHERE number > ? ORDER BY number LIMIT ?"
        )
        try:
            while rows := connection.execute(query, (self._copied[at], _CHUNK)).fetchall():
                for number, line, *texts in rows:
                    sealed = Sealed(line, hash_of(line), Bodies(*texts))
                    sink.write(sealed)
                    self._copied[at] = number
                    if self._ends[at] is not None:
                        self._ends[at] = Place(number, sealed.hash)
        except Exception:  # the entries are kept: whatever happens to a copy, nobody may be told otherwise
            log.exception("a copy of the audit log cannot be written; the store has the records")

    def sync(self) -> None:
        """Make what was copied so far outlive the machine's power, since the store is about to forget it."""
        for sink in self._sinks:
            if isinstance(sink, JsonLines):
                sink.sync()

    def close(self) -> None:
        close_logs(self._sinks)
