"""The audit records of a store: finding some, and proving that all are as they were written."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread

from toolgrove.store.audit import (
    START,
    AuditFile,
    AuditPage,
    AuditQuery,
    Bodies,
    Breach,
    ChainCheck,
    Notary,
    Place,
    Proof,
    as_written,
)
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.schema import KIND, UNUSUAL_OUTCOME, connect_reader
from toolgrove.store.journal.tables.encoding import Damaged, key
from toolgrove.store.journal.tables.head_row import Head

Answer = TypeVar("Answer")
# Room is made from the oldest on, so what is missing after the first that is there was taken out by hand. No text in
# a line can look like one of these keys, since JSON escapes quotes.
_LOST = """
SELECT (SELECT count(*) FROM audit AS earlier WHERE earlier.number < audit.number)
FROM audit LEFT JOIN audit_body USING (number)
WHERE number >= (SELECT min(number) FROM audit_body) AND (
    (arguments IS NULL AND line LIKE '%,"argumentsHash":"%') OR (result IS NULL AND line LIKE '%,"resultHash":"%')
)
ORDER BY number LIMIT 1
"""
# The number before the first record of a time; the plus keeps SQLite from looking for it record by record.
_SINCE = "max(?, (SELECT coalesce(min(+number) - 1, 9223372036854775807) FROM audit WHERE timestamp >= ?))"

# Records and bodies are ASCII, with everything else escaped.
_ANYWHERE = "line || coalesce(arguments, '') || coalesce(result, '') LIKE ? ESCAPE '\\'"
_IN_RECORD = "line LIKE ? ESCAPE '\\'"
_WILD = re.compile(r"[\\%_]")


class SqliteAuditLog:
    """Reads the records of a store, also of one that another process writes."""

    def __init__(
        self, path: Path, notary: Notary | None = None, *, copies: Iterable[Path] = (), archive: Path | None = None
    ) -> None:
        self._path = path
        self._notary = notary
        self._copies = tuple(copies)
        self._archive = archive

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records."""
        return await anyio.to_thread.run_sync(self._ask, lambda connection: _page(connection, query))

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written, here and in the copies."""
        return await anyio.to_thread.run_sync(self.prove, tuple(anchors))

    def prove(self, anchors: Iterable[Place] = ()) -> Proof:
        """The same, for those who may wait."""
        proof, passed, floor = self._ask(lambda connection: _prove(connection, self._notary, anchors))
        for path in self._copies:
            copy = AuditFile(path, self._notary).prove([passed], is_sealed=proof.sealed_from is not None)
            proof = proof.with_copy(path.name, copy)
        if self._archive is not None and self._archive.exists():
            # It holds the oldest records, which may be from before there was a key, up to those that went.
            archived = AuditFile(self._archive, self._notary).prove([floor], is_sealed=False)
            proof = proof.with_copy(self._archive.name, replace(archived, unchecked=()))
        return proof

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            with closing(connect_reader(self._path)) as connection:
                return question(connection)
        except (sqlite3.Error, Damaged) as error:
            raise unusable(self._path, error) from None


def _page(connection: sqlite3.Connection, query: AuditQuery) -> AuditPage:
    """The records that a query asks for; written so that an index serves every filter."""
    outcome = "outcome = ?" if query.outcome == "success" else f"{UNUSUAL_OUTCOME} AND outcome = ?"
    kind = f"coalesce({KIND}, 'call') = ?" if query.kind == "call" else f"{KIND} = ?"
    others = query.agent, query.tool, query.outcome, query.kind, query.call, query.run, query.text, query.tool_part
    # To look for the beginning costs a step for each record since then, so only where nothing else leads to them.
    from_time = (
        query.since is not None and query.after == 0 and query.before is None and others == (None,) * len(others)
    )
    start, values = (_SINCE, [query.after, query.since]) if from_time else ("?", [query.after])
    wanted = {
        "number < ?": query.before,
        "agent = ?": None if query.agent is None else key(query.agent),
        "operation = ?": None if query.tool is None else key(query.tool),
        outcome: query.outcome,
        kind: query.kind,
        "timestamp >= ?": query.since,
        "timestamp < ?": query.until,
        "json_extract(line, '$.callId') = ?": query.call,
        "json_extract(line, '$.runId') = ?": query.run,
        "operation LIKE ? ESCAPE '\\'": _part(query.tool_part),
        (_ANYWHERE if _has_bodies(connection) else _IN_RECORD): None
        if query.text is None
        else _part(as_written(query.text)),
    }
    given = {condition: value for condition, value in wanted.items() if value is not None}
    # The conditions are the constants above; every value is bound.
    conditions = " AND ".join((f"number > {start}", *given))
    order = "number DESC" if query.newest else "number"
    text = f"{_lines(connection)} WHERE {conditions} ORDER BY {order} LIMIT ?"
    rows = connection.execute(text, [*values, *given.values(), query.limit + 1])
    return AuditPage.of(map(_whole, rows), query.limit)


def _part(text: str | None) -> str | None:
    """A pattern for all that holds a text."""
    if text is None:
        return None
    return f"%{re.sub(_WILD, _escaped, text)}%"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _lines(connection: sqlite3.Connection, columns: str = "") -> str:
    """The beginning of a query for records with their bodies; a store from before has none until it is opened again."""
    if _has_bodies(connection):
        return f"SELECT {columns} line, arguments, result FROM audit LEFT JOIN audit_body USING (number)"  # noqa: S608
    return f"SELECT {columns} line, NULL, NULL FROM audit"  # noqa: S608  our own names


def _has_bodies(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'audit_body'").fetchone() is not None


def _whole(row: tuple[str, str | None, str | None]) -> str:
    line, *texts = row
    return Bodies(*texts).beside(line)


def _prove(
    connection: sqlite3.Connection, notary: Notary | None, anchors: Iterable[Place]
) -> tuple[Proof, Place, Place]:
    """What the records prove, a place that every copy must have, and one that the archive must have."""
    noted = None if notary is None else notary.noted()
    connection.execute("BEGIN")
    head = Head.read(connection)
    known = [*anchors, *([noted] if noted is not None else []), *([head.place] if head is not None else [])]
    floor = _floor(connection, head)
    check = ChainCheck(notary, floor=floor, known=known)
    _follow(connection, check)
    proof = check.finish(is_sealed=noted is not None)
    is_forged = head is None or (notary is not None and not notary.holds(head.seal_text, head.audit_seal))
    if proof.breach is None and proof.sealed_from is not None and is_forged:
        proof = replace(proof, breach=Breach(number=0, problem="the row that says where the log ends was altered"))
    lost = connection.execute(_LOST).fetchone() if proof.breach is None and _has_bodies(connection) else None
    if lost is not None:
        problem = "its arguments or its result are missing, and older ones are there"
        proof = replace(proof, breach=Breach(number=lost[0], problem=problem))
    return proof, noted or (START if head is None else head.place), floor


def _follow(connection: sqlite3.Connection, check: ChainCheck) -> None:
    columns = "number, timestamp, agent, operation, outcome,"
    with closing(connection.execute(f"{_lines(connection, columns)} ORDER BY number")) as rows:
        for *found, line, arguments, result in rows:
            link = check.follow(Bodies(arguments, result).beside(line))
            if link is None:
                return
            if found != _columns(link.record):
                check.fail("its columns, by which it is found, were altered", back=1)
                return


def _floor(connection: sqlite3.Connection, head: Head | None) -> Place:
    """What the oldest record rests on; older stores did not keep its number."""
    if head is None:
        return START
    first = connection.execute("SELECT min(number) FROM audit").fetchone()[0]
    is_known = head.audit_floor_number or head.floor == START or first is None
    return head.floor if is_known else Place(first - 1, head.audit_floor)


def _columns(record: Mapping[str, Any]) -> list[Any]:
    found = record["number"], record["timestamp"], key(record["agent"]), key(record["operation"]), record["outcome"]
    return list(found)
