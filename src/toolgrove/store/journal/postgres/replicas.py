"""The processes that have the store open, and the calls that those left which are gone."""

from __future__ import annotations

from typing import NamedTuple

from toolgrove.store.audit import Unfinished
from toolgrove.store.journal.tables import unfinished_calls
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.postgres.presence import ALIVE, FORGET, HOLD, LEAVE, STAY

_CALLS = f"SELECT body, crc, replica IS NULL OR replica NOT IN ({ALIVE}) FROM unfinished"  # noqa: S608  our own words


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


class Calls(NamedTuple):
    """Calls that have not ended, or in doubt: of all processes, and of those that are gone."""

    all: Unfinished
    orphans: Unfinished


def calls(connection: Connection) -> Calls:
    """Those that the store remembers."""
    rows = connection.execute(_CALLS).fetchall()
    return Calls(
        all=unfinished_calls.remembered([row[:2] for row in rows]),
        orphans=unfinished_calls.remembered([row[:2] for row in rows if row[2]]),
    )
