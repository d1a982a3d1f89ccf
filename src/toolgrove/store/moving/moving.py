"""The move: read once, written once, and compared before it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from toolgrove.store.moving.journal_tables import TABLES, Row, Table, Tally
from toolgrove.store.moving.state_contents import StateContents
from toolgrove.store.state import Moment


class Place(Protocol):
    """A store with its state, at one end of a move."""

    @property
    def told(self) -> str:
        """What it is called, without any secret."""

    def leaving(self) -> AbstractContextManager[None]:
        """Have it as it stands, with nobody else at work in it, and change nothing."""

    def entering(self) -> AbstractContextManager[None]:
        """Have it empty, to be filled whole or not at all; ValueError if it is not empty."""

    def rows(self, table: Table) -> Iterator[Row]: ...

    def put(self, table: Table, rows: Iterable[Row]) -> None: ...

    def state(self) -> StateContents: ...

    def put_state(self, contents: StateContents) -> None: ...

    def now(self) -> Moment:
        """The time by the clocks that its approvals go by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """One table that is the same on both sides."""

    table: str
    rows: int
    sha256: str


def move(source: Place, target: Place) -> list[Moved]:
    """Fill the target with all that the source has; ValueError, and nothing is kept, where the two are not the same."""
    moved = []
    with source.leaving(), target.entering():
        for table in TABLES:
            read = Tally()
            target.put(table, read.passing(source.rows(table)))
            moved.append(_same(table.name, read, Tally().take(target.rows(table))))
        contents = source.state()
        target.put_state(contents.at(target.now()))
        kept = target.state().tables()
        for name, rows in contents.tables().items():
            moved.append(_same(name, Tally().take(rows), Tally().take(kept[name])))
    return moved


def _same(name: str, read: Tally, kept: Tally) -> Moved:
    if read != kept:
        raise ValueError(
            f"{name} is not the same on both sides ({read.rows} rows there, {kept.rows} here); nothing was kept"
        )
    return Moved(table=name, rows=kept.rows, sha256=kept.sha256)
