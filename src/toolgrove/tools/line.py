"""The line at the journal: calls whose effects show in the workspace but are not durable yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import anyio

from toolgrove.tree.effects import Effects, Recorded


class Place:
    """One call's place in the line; what others read meanwhile hangs on its outcome."""

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
        """Tell everyone who waits."""
        self._kept = kept
        if self._event is not None:
            self._event.set()

    async def kept(self) -> bool:
        """Whether the effects stay; waits for the journal's answer."""
        if self._kept is None:
            self._event = self._event or anyio.Event()
            await self._event.wait()
        return bool(self._kept)


class Line:
    """Open places, oldest first: the journal keeps them in this order or refuses all that follow."""

    def __init__(self) -> None:
        self._places: deque[Place] = deque()

    @property
    def last(self) -> Place | None:
        """The newest place, if any is open."""
        return self._places[-1] if self._places else None

    def effects(self) -> Iterator[Effects]:
        """What is on its way."""
        return (place.recorded.effects for place in self._places)

    def join(self, recorded: Recorded) -> Place:
        """Stand at the end."""
        place = Place(recorded)
        self._places.append(place)
        return place

    def keep(self, place: Place) -> None:
        """The journal has this one, hence all before it."""
        while place.is_open:
            self._places.popleft().close(kept=True)

    def withdraw(self, place: Place) -> None:
        """The journal refused this one; all behind it rest on it and go as well, the newest first."""
        while place.is_open:
            newest = self._places.pop()
            newest.recorded.take_back()
            newest.close(kept=False)
