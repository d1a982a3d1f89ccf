"""Writing entries: a group of them in one transaction, each whole or not at all."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Sequence

from toolgrove.store.audit import Sealed, seal
from toolgrove.store.journal import Behind
from toolgrove.store.sqlite.body import checksum, key
from toolgrove.store.sqlite.copies import Copies
from toolgrove.store.sqlite.head import Head
from toolgrove.store.sqlite.insert import insert
from toolgrove.store.sqlite.keys import Keys
from toolgrove.store.sqlite.retention import Retention
from toolgrove.store.sqlite.rows import Row, Rows

Outcome = Sealed | OSError


class Ledger:
    """The tables as the writer sees them; what they hold is always the state after the last transaction."""

    def __init__(
        self, connection: sqlite3.Connection, head: Head, keys: Keys, copies: Copies, retention: Retention
    ) -> None:
        self._connection = connection
        self._head = head
        self._keys = keys
        self._copies = copies
        self._retention = retention
        self._pruned = 0

    def write(self, group: Sequence[Rows]) -> list[Outcome]:
        """Keep a group; for each entry its sealed audit record, or why it was refused."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes, head = self._fill(group)
            head.write(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            return [_refusal(error) for _ in group]
        except BaseException:
            self._roll_back()
            raise
        self._head = head
        self._copies.update(self._connection, head.audit_number)
        return outcomes

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _fill(self, group: Sequence[Rows]) -> tuple[list[Outcome], Head]:
        head = self._head
        revision, mark, number, digest = head.revision, head.mark, head.audit_number, head.audit_hash
        taken: list[Rows] = []
        outcomes: list[Outcome] = []
        audit: list[Row] = []
        for rows in group:
            effects = rows.effects
            if effects is not None:
                if effects.base != revision:
                    outcomes.append(Behind(base=effects.base, revision=revision))
                    continue
                revision, mark = effects.revision, effects.mark
            record, number = rows.audit, number + 1
            sealed = seal(record, number, digest)
            digest = sealed.hash
            columns = record.timestamp, key(record.agent), key(record.operation), record.outcome, sealed.line
            audit.append((number, *columns))
            taken.append(rows)
            outcomes.append(sealed)
        head = head._replace(revision=revision, mark=mark, audit_number=number, audit_hash=digest)
        insert(self._connection, "INSERT INTO audit (number, timestamp, agent, operation, outcome, line)", audit)
        floor = self._retention.prune(self._connection, min(number - 1, self._copies.least(number)))
        if floor is not None:
            head = head._replace(audit_floor=floor)
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
