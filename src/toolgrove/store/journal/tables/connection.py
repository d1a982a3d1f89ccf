"""A connection to the tables, as both databases have one: statements with question marks, and rows as tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

_ROWS = 1_024


class Found(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """Runs statements of the dialect that SQLite and we share."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Found: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...


Insert = Callable[[str, Sequence[tuple[Any, ...]]], None]


def insert(connection: Connection, opening: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run `INSERT INTO table (columns)` for all rows; few statements, since each lets go of the interpreter.

    A connection may have an `insert` of its own, for any number of rows.
    """
    own: Insert | None = getattr(connection, "insert", None)
    if own is not None:
        own(opening, rows)
        return
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        place = f"({','.join('?' * len(part[0]))})"
        values = ",".join([place] * len(part))
        connection.execute(f"{opening} VALUES {values}", list(chain.from_iterable(part)))
