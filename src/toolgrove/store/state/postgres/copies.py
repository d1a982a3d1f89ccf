"""Copies of what is asked for often: nobody on the event loop waits for the database only to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.postgres.database import Kind, StateDatabase

T = TypeVar("T")


class Copy(Generic[T]):
    """All of one kind. While somebody follows the database it answers from memory, else it asks each time."""

    def __init__(self, state: StateDatabase, kind: Kind, read: Callable[[Connection], T]) -> None:
        self.kind = kind
        self._state = state
        self._read = read
        self._followed = False
        self._kept: T | None = None

    def latest(self) -> T:
        """What is kept, as far as it was told here."""
        if self._followed and self._kept is not None:
            return self._kept
        return self.renew()

    def renew(self) -> T:
        """Read it anew."""
        with self._state.reading() as connection:
            self._kept = self._read(connection)
        return self._kept

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Change it; who asks here afterwards sees the change."""
        with self._state.writing(self.kind) as connection:
            yield connection
            fresh = self._read(connection)
        self._kept = fresh

    def followed(self, is_followed: bool) -> None:
        """Be told that somebody renews it at every change from now on, or no longer."""
        self._followed = is_followed
