"""Calls that began to change something outside, in their table: few rows, gone when the call has ended."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.store.audit import RememberedCall, Unfinished
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import checksum, decode_all, encode, key


def read(connection: Connection) -> Unfinished:
    """Those that the file remembers."""
    return remembered(connection.execute("SELECT body, crc FROM unfinished").fetchall())


def remembered(rows: Sequence[tuple[str, int]]) -> Unfinished:
    """Those of some rows."""
    return Unfinished([RememberedCall(*fields) for fields in decode_all("unfinished", rows)])


def of(connection: Connection, call_ids: Sequence[str]) -> dict[str, RememberedCall]:
    """What the table remembers of some calls."""
    places = ", ".join("?" * len(call_ids))
    query = f"SELECT body, crc FROM unfinished WHERE call IN ({places})"  # noqa: S608  question marks
    rows = connection.execute(query, list(map(key, call_ids))).fetchall()
    found = [RememberedCall(*fields) for fields in decode_all("unfinished", rows)]
    return {one.call_id: one for one in found}


def write(connection: Connection, kept: Sequence[RememberedCall]) -> None:
    """Remember or forget calls in the open transaction."""
    for one in kept:
        if one.state is None:
            connection.execute("DELETE FROM unfinished WHERE call = ?", (key(one.call_id),))
        else:
            body = encode(one)
            values = (key(one.call_id), body, checksum(body))
            connection.execute("INSERT OR REPLACE INTO unfinished (call, body, crc) VALUES (?, ?, ?)", values)
