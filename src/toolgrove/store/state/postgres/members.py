"""Which processes share the state."""

from __future__ import annotations

import secrets
import time

from toolgrove.store.postgres.presence import ALIVE, GRACE, LEAVE
from toolgrove.store.state.postgres.database import StateDatabase


class Member:
    """This process among them; its number stands in the approvals that it claims."""

    def __init__(self, state: StateDatabase) -> None:
        self._state = state
        self.number = secrets.randbits(63)
        self._came: float | None = None

    @property
    def id(self) -> str:
        """How the database knows it."""
        return name_of(self.number)

    def came(self) -> None:
        """It has a new connection: others, which lost theirs when it did, may need a moment longer."""
        self._came = time.monotonic()

    def is_alive(self, number: int) -> bool:
        """Whether a process is this one, or is there as far as one can tell."""
        return self.is_there(name_of(number))

    def is_there(self, id: str) -> bool:
        """The same of a process by its name."""
        if id == self.id or (self._came is not None and time.monotonic() - self._came < GRACE):
            return True
        with self._state.reading() as connection:
            return (id,) in connection.execute(ALIVE.encode()).fetchall()

    def leave(self) -> None:
        """Say that it is gone."""
        with self._state.writing("approvals") as connection:
            connection.execute(LEAVE, (self.id,))


def name_of(number: int) -> str:
    """The name of a process by its number."""
    return f"s{number:016x}"
