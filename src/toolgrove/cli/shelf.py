"""What a project keeps between runs, opened without starting any of its servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolgrove.config import Config
from toolgrove.store.approvals import Inbox, MemoryApprovals
from toolgrove.store.pins import MemoryPins, Pins
from toolgrove.store.sqlite_approvals import SqliteApprovals
from toolgrove.store.sqlite_pins import SqlitePins
from toolgrove.store.state import StateFile
from toolgrove.store.tokens import MemoryTokens, SqliteTokens, Tokens
from toolgrove.types import SystemClock


@dataclass(frozen=True, kw_only=True, slots=True)
class Shelf:
    """The pins, the inbox and the tokens."""

    pins: Pins
    inbox: Inbox
    tokens: Tokens


@contextmanager
def shelf(config: Config, *, make: bool = False) -> Iterator[Shelf]:
    """Open it; a project that has kept nothing yet is not given a file for looking, only to `make` something."""
    clock = SystemClock()
    file = config.state_file
    if file is None or not (make or file.exists()):
        yield Shelf(pins=MemoryPins(clock), inbox=Inbox(MemoryApprovals(), clock), tokens=MemoryTokens())
        return
    with StateFile(file) as state:
        inbox = Inbox(SqliteApprovals(state), clock)
        yield Shelf(pins=SqlitePins(state, clock), inbox=inbox, tokens=SqliteTokens(state))
