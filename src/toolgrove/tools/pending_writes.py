"""Writes that show in the workspace while the journal still makes them durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import anyio

from toolgrove.tree.effects import Effects, Recorded


class PendingWrite:
    """What one call wrote; others who read it wait for its outcome before they answer."""

    __slots__ = ("_event", "_kept", "recorded")

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self._kept: bool | None = None
        self._event: anyio.Event | None = None

    @property
    def is_open(self) -> bool:
        """Whether the journal has not answered yet."""
        return self._kept is None

    def close(self, *, kept: bool) -> None:
        """Take the journal's answer and wake everyone who waits for it."""
        self._kept = kept
        if self._event is not None:
            self._event.set()

    async def kept(self) -> bool:
        """Whether the effects stay; waits for the journal's answer."""
        if self._kept is None:
            self._event = self._event or anyio.Event()
            await self._event.wait()
        return bool(self._kept)


class PendingWrites:
    """Oldest first: the journal keeps them in this order, or refuses one and all that follow."""

    def __init__(self) -> None:
        self._writes: deque[PendingWrite] = deque()

    @property
    def last(self) -> PendingWrite | None:
        """The newest one, if any is open."""
        return self._writes[-1] if self._writes else None

    def effects(self) -> Iterator[Effects]:
        """What the journal does not have yet."""
        return (write.recorded.effects for write in self._writes)

    def add(self, recorded: Recorded) -> PendingWrite:
        """Put a write behind the others."""
        write = PendingWrite(recorded)
        self._writes.append(write)
        return write

    def keep(self, write: PendingWrite) -> None:
        """The journal has this one, hence all before it."""
        while write.is_open:
            self._writes.popleft().close(kept=True)

    def withdraw(self, write: PendingWrite) -> None:
        """The journal refused this one; all behind it rest on it and go as well, the newest first."""
        while write.is_open:
            newest = self._writes.pop()
            newest.recorded.take_back()
            newest.close(kept=False)
