"""Writing entries: a group of them in one transaction, each whole or not at all."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from toolgrove.store.audit import NO_BODIES, Bodies, Notary, Place, RememberedCall, Sealed, Unfinished, seal, unsigned
from toolgrove.store.file_marks import FileMarks
from toolgrove.store.journal.journal import Behind, Gone, Stalled
from toolgrove.store.journal.sqlite import unfinished_calls
from toolgrove.store.journal.sqlite.audit_bodies import AuditBodies
from toolgrove.store.journal.sqlite.audit_copies import AuditCopies
from toolgrove.store.journal.sqlite.audit_retention import AuditRetention
from toolgrove.store.journal.sqlite.compaction import compact
from toolgrove.store.journal.sqlite.encoding import checksum, insert, key
from toolgrove.store.journal.sqlite.head_row import Head
from toolgrove.store.journal.sqlite.idempotency_keys import IdempotencyKeys
from toolgrove.store.journal.sqlite.rows import Row, Rows

Outcome = Sealed | OSError


class Ledger:
    """The tables as the writer sees them; what they hold is always the state after the last transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        head: Head,
        keys: IdempotencyKeys,
        copies: AuditCopies,
        retention: AuditRetention,
        bodies: AuditBodies,
        unfinished: Unfinished,
        notary: Notary | None,
        files: FileMarks,
    ) -> None:
        self.unfinished = unfinished
        self._files = files
        self._connection = connection
        self._head = head
        self._keys = keys
        self._copies = copies
        self._retention = retention
        self._bodies = bodies
        self._pruned = 0
        self._notary = notary
        self._sign = unsigned if notary is None else notary.seal

    def announce(self, records: Sequence[Mapping[str, Any]], after: Place) -> None:
        """Keep what a log that is opened says first, sealed with this machine's key."""
        rows: list[Row] = []
        heard: list[RememberedCall] = []
        for record in records:
            after = Place(after.number + 1, self._seal(record, after, rows, heard).hash)
        if records or self._head.audit_seal != self._sign(self._head.seal_text):
            self._connection.execute("BEGIN IMMEDIATE")
            self._keep_records(rows, heard)
            self._commit(self._head._replace(audit_number=after.number, audit_hash=after.hash))
        self._files.settle()
        self._tell_outside()

    def write(self, group: Sequence[Rows]) -> list[Outcome]:
        """Keep a group; for each entry its sealed audit record, or why it was refused.

        Raises Stalled where somebody else holds the store; a commit into files that nobody finds again is refused.
        """
        before, floor = self.unfinished.copy(), self._head.floor
        try:
            self._begin()
            outcomes, head = self._fill(group)
            self._commit(head)
            self._files.settle()
            if self._files.are_lost():
                return [Gone() for _ in group]
        except Gone:
            return [Gone() for _ in group]
        except Stalled:
            raise
        except sqlite3.Error as error:
            self._roll_back(before)
            return [_refusal(error) for _ in group]
        except BaseException:
            self._roll_back(before)
            raise
        self._tell_outside()
        if self._head.floor != floor:
            compact(self._connection)
            self._files.settle()
        return outcomes

    def look(self, *, thoroughly: bool) -> None:
        """Find out whether it could be written, thoroughly by writing; raises Stalled, Gone or an error of SQLite."""
        self._begin()
        try:
            if thoroughly:
                self._head.write(self._connection)
                self._connection.execute("COMMIT")
                self._files.settle()
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _begin(self) -> None:
        if self._files.are_lost():
            raise Gone
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Stalled from None
            raise

    def _commit(self, head: Head) -> None:
        head = head._replace(audit_seal=self._sign(head.seal_text))
        head.write(self._connection)
        self._connection.execute("COMMIT")
        self._head = head

    def _tell_outside(self) -> None:
        """Bring the copies up to the head, then the mark, so that it is never ahead of them."""
        self._copies.update(self._connection, self._head.audit_number)
        if self._notary is not None:
            self._notary.note(self._head.place)

    def _roll_back(self, unfinished: Unfinished) -> None:
        self.unfinished.take_back(unfinished)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._files.settle()

    def _seal(
        self,
        record: Mapping[str, Any],
        after: Place,
        rows: list[Row],
        heard: list[RememberedCall],
        bodies: Bodies = NO_BODIES,
    ) -> Sealed:
        """Put a record at the end of the chain: its row, and what it means for calls without an end."""
        sealed = seal(record, after, self._sign, bodies)
        columns = record["timestamp"], key(record["agent"]), key(record["operation"]), record["outcome"], sealed.line
        rows.append((after.number + 1, *columns))
        heard += self.unfinished.hear(record)
        return sealed

    def _keep_records(self, rows: Sequence[Row], heard: Sequence[RememberedCall]) -> None:
        insert(self._connection, "INSERT INTO audit (number, timestamp, agent, operation, outcome, line)", rows)
        unfinished_calls.write(self._connection, heard)

    def _fill(self, group: Sequence[Rows]) -> tuple[list[Outcome], Head]:
        head = self._head
        revision, mark, place = head.revision, head.mark, head.place
        taken: list[Rows] = []
        outcomes: list[Outcome] = []
        audit: list[Row] = []
        heard: list[RememberedCall] = []
        bodies: list[tuple[int, Bodies]] = []
        for rows in group:
            effects = rows.effects
            if effects is not None:
                if effects.base != revision:
                    outcomes.append(Behind(base=effects.base, revision=revision))
                    continue
                revision, mark = effects.revision, effects.mark
            sealed = self._seal(rows.audit.to_json(), place, audit, heard, rows.audit.bodies)
            place = Place(place.number + 1, sealed.hash)
            bodies.append((place.number, sealed.bodies))
            taken.append(rows)
            outcomes.append(sealed)
        head = head._replace(revision=revision, mark=mark, audit_number=place.number, audit_hash=place.hash)
        self._keep_records(audit, heard)
        filled = self._bodies.keep(self._connection, bodies, head.audit_body_bytes)
        floor = self._retention.prune(self._connection, min(place.number - 1, self._copies.least(place.number)))
        if floor is not None:
            filled = self._bodies.drop(self._connection, floor.number, filled)
            head = head._replace(audit_floor=floor.hash, audit_floor_number=floor.number)
        head = head._replace(audit_body_bytes=filled)
        self._change(taken)
        kept = [(rows.key, rows.result) for rows in taken if rows.key is not None]
        if kept:
            self._keys.keep(self._connection, kept)
        if head.mark.floor > self._pruned:
            self._connection.execute("DELETE FROM journal WHERE revision <= ?", (head.mark.floor,))
            self._pruned = head.mark.floor
        return outcomes, head

    def _change(self, taken: Sequence[Rows]) -> None:
        connection = self._connection
        past: list[Row] = []
        nodes: dict[str, str | None] = {}
        for rows in taken:
            if rows.effects is not None:
                past.append((rows.effects.revision, rows.effects.base, rows.journal, checksum(rows.journal)))
                nodes.update(rows.nodes)
                for statement, parameters in rows.beside:
                    connection.executemany(statement, parameters)
        insert(connection, "INSERT INTO journal (revision, base, body, crc)", past)
        present = [(name, body, checksum(body)) for name, body in nodes.items() if body is not None]
        insert(connection, "INSERT OR REPLACE INTO node (id, body, crc)", present)
        gone = [(name,) for name, body in nodes.items() if body is None]
        if gone:
            connection.executemany("DELETE FROM node WHERE id = ?", gone)


def _refusal(error: sqlite3.Error) -> OSError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, "no room for the store: free some space on its disk")
    return OSError(errno.EIO, f"the store cannot be written: {error}")
