"""Which processes share the state: each says every few seconds that it is alive, by the database's clock."""

from __future__ import annotations

import secrets

from toolgrove.store.state.postgres.database import StateDatabase

LEASE = 15.0
"""After how many seconds of silence a process counts as gone."""
STAY = "INSERT INTO replica (id) VALUES (%s) ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()"
_LEAVE = "DELETE FROM replica WHERE id = %s"
_ALIVE = "SELECT id FROM replica WHERE seen > clock_timestamp() - make_interval(secs => %s)"


class Member:
    """This process among them; its number stands in the approvals that it claims."""

    def __init__(self, state: StateDatabase) -> None:
        self._state = state
        self.number = secrets.randbits(63)

    @property
    def id(self) -> str:
        """How the database knows it."""
        return name_of(self.number)

    def is_alive(self, number: int) -> bool:
        """Whether a process is this one, or was heard of lately."""
        if number == self.number:
            return True
        with self._state.reading() as connection:
            return (name_of(number),) in connection.execute(_ALIVE, (LEASE,)).fetchall()

    def leave(self) -> None:
        """Say that it is gone."""
        with self._state.writing("approvals") as connection:
            connection.execute(_LEAVE, (self.id,))


def name_of(number: int) -> str:
    """The name of a process by its number."""
    return f"s{number:016x}"
