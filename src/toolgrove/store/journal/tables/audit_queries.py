"""The audit records in their table: finding some, and proving that all are as they were written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
    PublicKeys,
    as_written,
)
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import key
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.tree.history import read_id

UNUSUAL_OUTCOME = "outcome <> 'success'"
_CHUNK = 2_000
_BITS = 10
SPAN_OF = f"number >> {_BITS}"
"""In which span of records one is; agents and tools are looked up span by span.

So records by many agents change few pages of an index. In return, to look for a seldom one takes 10 ms per million.
"""
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
_SINCE = "(?, (SELECT coalesce(min(+number) - 1, 9223372036854775807) FROM audit WHERE timestamp >= ?))"
_LAST = 2**63 - 1
_UP_TO = "SELECT max(number) FROM audit WHERE number <= ?"
_BEYOND = "SELECT min(number) FROM audit WHERE number > ?"
# The bounds say the same again: in a store from before there were spans, they lead to the records.
_IN_SPAN = f"{SPAN_OF} = ? AND number >= ? AND number <= ?"
# Records and bodies are ASCII, with everything else escaped.
_ANYWHERE = "line || coalesce(arguments, '') || coalesce(result, '')"
_WILD = re.compile(r"[\\%_]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """In which databases differ: the kind of a record, its call and its run, the larger of two, finding a text whatever
    its capitals, how a text stands in a column, whether there is a table of bodies, whether agents and tools are looked
    up span by span, and whether the journal names its changes."""

    kind: str
    call: str
    run: str
    greatest: str
    like: str
    kept_as: Callable[[str], str] = str
    has_bodies: bool = True
    has_spans: bool = False
    has_changes: bool = True


def page(connection: Connection, query: AuditQuery, terms: Terms) -> AuditPage:
    """The records that a query asks for; written so that an index serves every filter."""
    outcome = "outcome = ?" if query.outcome == "success" else f"{UNUSUAL_OUTCOME} AND outcome = ?"
    kind = f"coalesce({terms.kind}, 'call') = ?" if query.kind == "call" else f"{terms.kind} = ?"
    others = query.agent, query.tool, query.outcome, query.kind, query.call, query.run, query.text, query.tool_part
    # To look for the beginning costs a step for each record since then, so only where nothing else leads to them.
    from_time = (
        query.since is not None and query.after == 0 and query.before is None and others == (None,) * len(others)
    )
    start, values = (f"{terms.greatest}{_SINCE}", [query.after, query.since]) if from_time else ("?", [query.after])
    wanted = {
        "number < ?": query.before,
        "agent = ?": None if query.agent is None else key(query.agent),
        "operation = ?": None if query.tool is None else key(query.tool),
        outcome: query.outcome,
        kind: query.kind,
        "timestamp >= ?": query.since,
        "timestamp < ?": query.until,
        f"{terms.call} = ?": query.call,
        f"{terms.run} = ?": query.run,
        f"operation {terms.like} ? ESCAPE '\\'": _part(query.tool_part),
        f"{_ANYWHERE if terms.has_bodies else 'line'} {terms.like} ? ESCAPE '\\'": None
        if query.text is None
        else _part(as_written(query.text)),
    }
    given = {condition: value for condition, value in wanted.items() if value is not None}
    # The conditions are the constants above; every value is bound.
    conditions = " AND ".join((f"number > {start}", *given))
    order = "number DESC" if query.newest else "number"
    values = [*values, *given.values(), query.limit + 1]
    if terms.has_spans and not (query.agent is None and query.tool is None):
        text = f"{_lines(terms)} WHERE {_IN_SPAN} AND {conditions} ORDER BY {order} LIMIT ?"
        rows = _by_span(connection, text, values, query)
    else:
        text = f"{_lines(terms)} WHERE {conditions} ORDER BY {order} LIMIT ?"
        rows = iter(connection.execute(text, values))
    return AuditPage.of(map(_whole, rows), query.limit)


def _by_span(connection: Connection, text: str, values: Sequence[Any], query: AuditQuery) -> Iterator[Any]:
    """The rows of a query, which is asked for one span after the other until there are enough."""
    left, least, most = query.limit + 1, query.after, _LAST if query.before is None else query.before - 1
    bound = most if query.newest else least
    while left > 0:
        number = connection.execute(_UP_TO if query.newest else _BEYOND, [bound]).fetchone()[0]
        if number is None or not least < number <= most:
            return
        first = number >> _BITS << _BITS
        last = first | (1 << _BITS) - 1
        for row in connection.execute(text, [number >> _BITS, first, last, *values]):
            yield row
            left -= 1
        bound = first - 1 if query.newest else last


def _part(text: str | None) -> str | None:
    """A pattern for all that holds a text."""
    if text is None:
        return None
    return f"%{re.sub(_WILD, _escaped, text)}%"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _lines(terms: Terms, columns: str = "") -> str:
    """The beginning of a query for records with their bodies."""
    if terms.has_bodies:
        return f"SELECT {columns} line, arguments, result FROM audit LEFT JOIN audit_body USING (number)"  # noqa: S608
    return f"SELECT {columns} line, NULL, NULL FROM audit"  # noqa: S608  our own names


def _whole(row: tuple[str, str | None, str | None]) -> str:
    line, *texts = row
    return Bodies(*texts).beside(line)


def prove(
    connection: Connection, seals: Notary | PublicKeys | None, anchors: Iterable[Place], terms: Terms
) -> tuple[Proof, Place, Place]:
    """What the records prove, a place that every copy must have, and one that the archive must have.

    The connection sees one moment of the tables meanwhile.
    """
    notary = seals if isinstance(seals, Notary) else None
    noted = None if notary is None else notary.noted()
    head = Head.read(connection)
    known = [*anchors, *([noted] if noted is not None else []), *([head.place] if head is not None else [])]
    floor = _floor(connection, head)
    is_stamped = head is not None and notary is not None and notary.holds(head.seal_text, head.audit_seal)
    check = ChainCheck(seals, floor=floor, known=known, vouched=[head.place] if head is not None and is_stamped else [])
    if isinstance(seals, PublicKeys) and floor.number and (head is None or not _is_signed(head, seals)):
        check.doubt(f"that the records up to {floor.number} went with their time: no seal of this key says so")
    changes = _follow(connection, check, terms)
    proof = check.finish(is_sealed=noted is not None)
    if proof.breach is None and head is not None and terms.has_changes:
        proof = _compared(connection, proof, head, changes)
    is_forged = head is None or (notary is not None and not is_stamped)
    is_ours = proof.sealed_from is not None or _is_of(head, notary)
    if proof.breach is None and is_ours and is_forged:
        proof = replace(proof, breach=Breach(number=0, problem="the row that says where the log ends was altered"))
    lost = connection.execute(_LOST).fetchone() if proof.breach is None and terms.has_bodies else None
    if lost is not None:
        problem = "its arguments or its result are missing, and older ones are there"
        proof = replace(proof, breach=Breach(number=lost[0], problem=problem))
    return proof, noted or (START if head is None else head.place), floor


def _is_of(head: Head | None, notary: Notary | None) -> bool:
    """Whether a store says that this key signs its log."""
    return head is not None and notary is not None and notary.has_key and head.audit_key == notary.public


def _is_signed(head: Head, key: PublicKeys) -> bool:
    """Whether a key signed what the oldest record rests on."""
    return key.can_check(head.audit_floor_seal) and key.holds(head.floor_text, head.audit_floor_seal)


def _follow(connection: Connection, check: ChainCheck, terms: Terms) -> list[str]:
    """Take all records; the changes of the tree that they acknowledge."""
    changes: list[str] = []
    for *found, line, arguments, result in _all(connection, terms):
        link = check.follow(Bodies(arguments, result).beside(line))
        if link is None:
            break
        if found != _columns(link.record, terms):
            check.fail("its columns, by which it is found, were altered", back=1)
            break
        if "commit" in link.record:
            changes.append(str(link.record["commit"]))
    return changes


def _compared(connection: Connection, proof: Proof, head: Head, changes: Sequence[str]) -> Proof:
    """A proof, and whether the journal has what the records acknowledge, as far back as both reach.

    Records of before did not name their change, and retention takes records that the journal has longer; the journal
    itself forgets what is older than its floor.
    """
    rows = connection.execute("SELECT id, revision FROM journal ORDER BY revision").fetchall()
    journal: dict[str, int] = dict(rows)
    numbers = {one: found[1] for one in changes if (found := read_id(one)) is not None}
    told, start = set(changes), min(numbers.values(), default=None)
    twice = next((one for one, count in Counter(changes).items() if count > 1), None)
    lost = next((one for one in changes if one not in journal and numbers.get(one, 0) > head.mark.floor), None)
    untold = next((one for one, revision in rows if revision >= start and one not in told), None) if start else None
    problem = None
    if len(journal) < len(rows):
        problem = "the journal has a change twice"
    elif twice is not None:
        problem = f"two records tell of the change {twice}"
    elif lost is not None:
        problem = f"the change {lost}, which a record acknowledges, is not in the journal"
    elif untold is not None:
        problem = f"the journal has the change {untold}, of which no record tells"
    if problem is not None:
        count = 0 if proof.first is None or proof.last is None else proof.last - proof.first + 1
        return replace(proof, breach=Breach(number=count, problem=problem))
    if start is not None and rows and rows[0][1] < start and proof.first == 1:
        remark = f"the changes before {start} against the journal: their records do not name them"
        return replace(proof, unchecked=(*proof.unchecked, remark))
    return proof


def _all(connection: Connection, terms: Terms) -> Iterator[Any]:
    query = f"{_lines(terms, 'number, timestamp, agent, operation, outcome,')} WHERE number > ? ORDER BY number LIMIT ?"
    last = 0
    while rows := connection.execute(query, (last, _CHUNK)).fetchall():
        yield from rows
        last = rows[-1][0]


def with_archive(proof: Proof, path: Path, floor: Place, seals: Notary | PublicKeys | None) -> Proof:
    """A proof, and what the archive adds to it: it holds the oldest records, up to those that went."""
    if not path.exists():
        return proof
    archived = AuditFile(path, seals).prove([floor], is_sealed=False)
    return proof.with_copy(path.name, archived, is_part=True)


def _floor(connection: Connection, head: Head | None) -> Place:
    """What the oldest record rests on; older stores did not keep its number."""
    if head is None:
        return START
    first = connection.execute("SELECT min(number) FROM audit").fetchone()[0]
    is_known = head.audit_floor_number or head.floor == START or first is None
    return head.floor if is_known else Place(first - 1, head.audit_floor)


def _columns(record: Mapping[str, Any], terms: Terms) -> list[Any]:
    agent, operation = (terms.kept_as(key(record[name])) for name in ("agent", "operation"))
    return [record["number"], record["timestamp"], agent, operation, record["outcome"]]
