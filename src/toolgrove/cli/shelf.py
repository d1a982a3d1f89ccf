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
from toolgrove.types import SystemClock


@dataclass(frozen=True, kw_only=True, slots=True)
class Shelf:
    """The pins and the inbox."""

    pins: Pins
    inbox: Inbox


@contextmanager
def shelf(config: Config) -> Iterator[Shelf]:
    """Open it; a project that has kept nothing yet is not given a file for looking."""
    clock = SystemClock()
    file = config.state_file
    if file is None or not file.exists():
        yield Shelf(pins=MemoryPins(clock), inbox=Inbox(MemoryApprovals(), clock))
        return
    with StateFile(file) as state:
        yield Shelf(pins=SqlitePins(state, clock), inbox=Inbox(SqliteApprovals(state), clock))
