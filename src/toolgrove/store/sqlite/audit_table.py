"""The audit records in their table: finding some, and proving that all are as they were written."""

from __future__ import annotations

import json
import sqlite3

from toolgrove.store.audit import Breach, verify
from toolgrove.store.audit_log import AuditPage, AuditQuery
from toolgrove.store.sqlite.body import key
from toolgrove.store.sqlite.head import Head


def page(connection: sqlite3.Connection, query: AuditQuery) -> AuditPage:
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


def breach(connection: sqlite3.Connection) -> Breach | None:
    """Where the chain of records breaks, if it does; also where its end was cut off."""
    connection.execute("BEGIN")
    lines = (line for (line,) in connection.execute("SELECT line FROM audit ORDER BY number"))
    found = verify(lines)
    if found is not None:
        return found
    head = Head.read(connection)
    last = connection.execute("SELECT number, line FROM audit ORDER BY number DESC LIMIT 1").fetchone()
    if head is not None and head.audit_number and (last is None or json.loads(last[1])["hash"] != head.audit_hash):
        return Breach(number=0 if last is None else last[0], problem="records after it are missing")
    return None
