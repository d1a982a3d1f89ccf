"""The tables of a journal: the same rows in every store, in an order that every store agrees on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table by its columns; `key` is the order of its rows."""

    name: str
    key: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def columns(self) -> str:
        """All of them, as SQL lists them."""
        return ", ".join((*self.key, *self.others))

    @property
    def width(self) -> int:
        """How many there are."""
        return len(self.key) + len(self.others)

    @property
    def select(self) -> str:
        """Every row, in order."""
        return f"SELECT {self.columns} FROM {self.name} ORDER BY {', '.join(self.key)}"  # noqa: S608


_BODY = ("body", "crc")
TABLES = (
    Table(name="head", key=("one",), others=_BODY),
    Table(name="node", key=("id",), others=_BODY),
    Table(name="journal", key=("revision",), others=("base", "id", "parent", *_BODY)),
    Table(name="fold", key=("moment",), others=_BODY),
    Table(name="view", key=("agent", "session"), others=_BODY),
    Table(name="expanded", key=("place",), others=("agent", "session", "node", *_BODY)),
    Table(name="bookmark", key=("agent", "label"), others=_BODY),
    Table(name="snapshot", key=("number",), others=_BODY),
    Table(name="idempotency", key=("number",), others=("agent", "key", "at", *_BODY)),
    Table(name="audit", key=("number",), others=("timestamp", "agent", "operation", "outcome", "line")),
    Table(name="audit_body", key=("number",), others=("arguments", "result", "size")),
    Table(name="unfinished", key=("call",), others=_BODY),
)


class Tally:
    """Counts and hashes rows as they pass."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, each counted."""
        for row in rows:
            self.rows += 1
            self._hash.update(json.dumps(row).encode() + b"\n")
            yield row

    def take(self, rows: Iterable[Row]) -> Tally:
        """Count all of them."""
        for _ in self.passing(rows):
            pass
        return self

    @property
    def sha256(self) -> str:
        """The digest of all that passed."""
        return self._hash.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and (self.rows, self.sha256) == (other.rows, other.sha256)

    __hash__ = None  # type: ignore[assignment]
