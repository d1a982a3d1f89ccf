"""The audit records of a store: finding some, and proving that all are as they were written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from toolgrove.store.audit import Breach, verify
from toolgrove.store.audit_log import AuditPage, AuditQuery
from toolgrove.store.sqlite.body import Damaged, key
from toolgrove.store.sqlite.diagnosis import unusable
from toolgrove.store.sqlite.head import Head
from toolgrove.store.sqlite.schema import connect_reader

Answer = TypeVar("Answer")


class SqliteAuditLog:
    """Reads the records of a store, also of one that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records."""
        return await anyio.to_thread.run_sync(self._ask, lambda connection: _page(connection, query))

    async def verify(self) -> Breach | None:
        """Whether the audit records are as they were written."""
        return await anyio.to_thread.run_sync(self._ask, _breach)

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            with closing(connect_reader(self._path)) as connection:
                return question(connection)
        except (sqlite3.Error, Damaged) as error:
            raise unusable(self._path, error) from None


def _page(connection: sqlite3.Connection, query: AuditQuery) -> AuditPage:
    """The records that a query asks for."""
    wanted = {
        "number > ?": query.after,
        "number < ?": query.before,
        "agent = ?": None if query.agent is None else key(query.agent),
        "operation = ?": None if query.tool is None else key(query.tool),
        "outcome = ?": query.outcome,
        "timestamp >= ?": query.since,
    }
    given = {condition: value for condition, value in wanted.items() if value is not None}
    # The conditions are the constants above; every value is bound.
    order = "number DESC" if query.newest else "number"
    text = f"SELECT line FROM audit WHERE {' AND '.join(given)} ORDER BY {order} LIMIT ?"  # noqa: S608
    rows = connection.execute(text, [*given.values(), query.limit + 1])
    return AuditPage.cut([json.loads(line) for (line,) in rows], query.limit)


def _breach(connection: sqlite3.Connection) -> Breach | None:
    """Where the chain of records breaks, if it does; also where its beginning or its end was cut off."""
    connection.execute("BEGIN")
    lines = (line for (line,) in connection.execute("SELECT line FROM audit ORDER BY number"))
    found = verify(lines)
    if found is not None:
        return found
    head = Head.read(connection)
    first = connection.execute("SELECT line FROM audit ORDER BY number LIMIT 1").fetchone()
    if head is not None and head.audit_floor and first and json.loads(first[0])["previous"] != head.audit_floor:
        return Breach(number=0, problem="records before it are missing")
    last = connection.execute("SELECT number, line FROM audit ORDER BY number DESC LIMIT 1").fetchone()
    if head is not None and head.audit_number and (last is None or json.loads(last[1])["hash"] != head.audit_hash):
        return Breach(number=0 if last is None else last[0], problem="records after it are missing")
    return None
