"""Which processes have the store open: each says again and again that it is alive, by the database's clock."""

from __future__ import annotations

from toolgrove.store.audit import Unfinished
from toolgrove.store.journal.tables import unfinished_calls
from toolgrove.store.journal.tables.connection import Connection

LEASE = 15.0
"""After how many seconds of silence a process counts as gone."""
_SEEN = "INSERT INTO replica (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()"
_ALIVE = "SELECT id FROM replica WHERE seen > clock_timestamp() - make_interval(secs => ?)"
_FORGET = "DELETE FROM replica WHERE seen < clock_timestamp() - make_interval(secs => ?)"
_ORPHANS = f"SELECT body, crc FROM unfinished WHERE replica IS NULL OR replica NOT IN ({_ALIVE})"  # noqa: S608  our own words


class Replica:
    """This process among those that write the store."""

    def __init__(self, name: str) -> None:
        self.name = name

    def stay(self, connection: Connection) -> None:
        """Say that it is alive."""
        connection.execute(_SEEN, (self.name,))

    def leave(self, connection: Connection) -> None:
        """Say that it is gone."""
        connection.execute("DELETE FROM replica WHERE id = ?", (self.name,))
        connection.execute(_FORGET, (20 * LEASE,))


def orphans(connection: Connection) -> Unfinished:
    """Calls that began in a process that is gone."""
    return unfinished_calls.remembered(connection.execute(_ORPHANS, (LEASE,)).fetchall())
