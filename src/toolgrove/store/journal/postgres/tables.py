"""The statements of the tables, as PostgreSQL takes them: other marks, another way to replace, no NUL in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolgrove.store.postgres.connecting import Connection

_REPLACE = re.compile(r"INSERT OR REPLACE INTO (\w+) \(([^)]+)\)")
_COLUMNS = re.compile(r"\(([^()]+)\)$")
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("number", "revision", "base", "crc", "size"), "bigint"),
    "at": "double precision",
}
"""Of the columns that are no text."""
_KEYS: Mapping[str, str] = {
    "head": "one",
    "node": "id",
    "view": "agent, session",
    "bookmark": "agent, label",
    "idempotency": "agent, key",
    "unfinished": "call",
}
_RENEWED: Mapping[str, str] = {"idempotency": "number = excluded.number"}
"""What else changes with a row that takes the place of another."""
_ODD = "\x01"
_MARK = re.compile(r"\?(?!:)")  # those of a pattern stay


@lru_cache(maxsize=1024)
def translated(statement: str) -> bytes:
    """A statement for psycopg."""
    found = _REPLACE.match(statement)
    if found is not None:
        table, columns = found.groups()
        own = [f"{name} = excluded.{name}" for name in columns.split(", ") if name not in _KEYS[table].split(", ")]
        renewed = ", ".join([*own, *([_RENEWED[table]] if table in _RENEWED else [])])
        rest = statement[found.end() :]
        statement = f"INSERT INTO {table} ({columns}){rest} ON CONFLICT ({_KEYS[table]}) DO UPDATE SET {renewed}"
    return _MARK.sub("%s", statement).encode()


@lru_cache(maxsize=64)
def from_columns(opening: str) -> str:
    """`INSERT INTO table (columns)` for any number of rows, given as one array for each column."""
    arrays = [f"%b::{_TYPES.get(name, 'text')}[]" for name in _COLUMNS.findall(opening)[0].split(", ")]
    return f"{opening} SELECT * FROM unnest({', '.join(arrays)})"  # noqa: S608  our own words


def kept_as(value: Any) -> Any:
    """A value as a column can hold it; a text with NUL is written in hexadecimal, and none else begins like that."""
    if type(value) is str and ("\0" in value or value[:1] == _ODD):
        return _ODD + value.encode().hex()
    return value


class Found:
    """What a statement gives; in a pipeline it is sent when somebody asks."""

    def __init__(self, tables: PostgresTables, cursor: Any) -> None:
        self._tables = tables
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """How many rows it met."""
        self._tables.flush()
        return int(self._cursor.rowcount)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        found: list[Any] = self._cursor.fetchall()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)

    def close(self) -> None:
        self._cursor.close()


class PostgresTables:
    """A connection to the tables; inside `pipeline`, statements that nobody asks about are sent together."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._pipeline: Any = None

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Found:
        """Run a statement; without values, a percent sign is one."""
        given = [kept_as(value) for value in values]
        text = translated(statement) if given else statement.encode()
        return Found(self, self.connection.execute(text, given or None))

    def insert(self, opening: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows by a statement that is the same for any number of them, so that it is prepared once."""
        if rows:
            columns = [[kept_as(value) for value in column] for column in zip(*rows, strict=True)]
            self.connection.execute(translated(from_columns(opening)), columns)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each row."""
        for row in rows:
            self.execute(statement, row)

    def flush(self) -> None:
        """Have all that was sent in the pipeline answered."""
        if self._pipeline is not None:
            self._pipeline.sync()

    def __enter__(self) -> PostgresTables:
        """Begin a pipeline."""
        self._entered = self.connection.pipeline()
        self._pipeline = self._entered.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._pipeline = None
        self._entered.__exit__(*problem)
