"""The processes that have the store open, and the calls that those left which are gone or were taken for gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolgrove.store.audit import OUTCOME_UNKNOWN, Unfinished
from toolgrove.store.journal.tables import unfinished_calls
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.rows import Rows
from toolgrove.store.postgres.presence import ALIVE, FORGET, HOLD, LEAVE, STAY

_SEEN = """to_char(seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')"""
_CALLS = (
    f"SELECT body, crc, replica IS NULL OR replica NOT IN ({ALIVE}), call, {_SEEN} FROM unfinished "  # noqa: S608  our own words
    "LEFT JOIN replica ON replica.id = unfinished.replica"
)


class Replica:
    """This process among those that write the store."""

    def __init__(self, name: str) -> None:
        self.name = name

    def come(self, connection: Connection) -> None:
        """Be there for as long as the connection is."""
        connection.execute(HOLD, (self.name,))
        self.stay(connection)

    def stay(self, connection: Connection) -> None:
        """Say that it is alive."""
        connection.execute(STAY, (self.name,))

    def leave(self, connection: Connection) -> None:
        """Say that it is gone."""
        connection.execute(LEAVE, (self.name,))
        connection.execute(FORGET)


def running(connection: Connection, *, but: str = "") -> list[str]:
    """The processes that have the store open, `but` for one."""
    return [name for (name,) in connection.execute(f"{ALIVE} ORDER BY id").fetchall() if name != but]


class Calls(NamedTuple):
    """Calls that have not ended, or in doubt: of all processes, and of those that are gone.

    `seen` is when the process of each was last heard of.
    """

    all: Unfinished
    orphans: Unfinished
    seen: Mapping[str, str]

    def lived(self, call_id: str) -> str:
        """Until when the process of a call is known to have lived; empty where nobody knows."""
        return self.seen.get(call_id, "")


def calls(connection: Connection) -> Calls:
    """Those that the store remembers."""
    rows = connection.execute(_CALLS).fetchall()
    return Calls(
        all=unfinished_calls.remembered([row[:2] for row in rows]),
        orphans=unfinished_calls.remembered([row[:2] for row in rows if row[2]]),
        seen={row[3]: row[4] for row in rows if row[4] is not None},
    )


def as_notes(connection: Connection, unfinished: Unfinished, group: Sequence[Rows]) -> list[Rows]:
    """The entries of a group; the end of a call that another process has closed meanwhile is a note beside that."""
    ended = {
        rows.audit.call_id for rows in group if rows.audit.outcome != "begun" and unfinished.is_open(rows.audit.call_id)
    }
    told = {call_id for rows in group if (call_id := _told_of(rows.audit.error)) is not None}
    if not ended and not told:
        return list(group)
    found = unfinished_calls.of(connection, sorted(ended | told))
    closed = {call_id for call_id in ended if call_id not in found or found[call_id].state != "begun"}
    for call_id in found.keys() & (closed | told):
        unfinished.adopt(found[call_id])
    return [
        rows._replace(audit=unfinished.known_later(rows.audit)) if rows.audit.call_id in closed else rows
        for rows in group
    ]


def _told_of(error: Mapping[str, Any] | None) -> str | None:
    """The call in doubt that a refusal told an agent of; another process may know more of it by now."""
    return error.get("callId") if error is not None and error.get("reason") == OUTCOME_UNKNOWN else None
