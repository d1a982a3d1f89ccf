"""A store that takes nothing just now: since when, and one wait for all who want to write."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from toolgrove.store.journal.journal import Stalled
from toolgrove.types import Clock

PATIENCE = 5.0
"""Seconds from the beginning of a stall in which writers wait for its end; after them they are refused at once."""


class Stall:
    """Met and ended by the writer's thread, waited for on any loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}

    @property
    def is_on(self) -> bool:
        """Whether the store was held at the last look."""
        return self._since is not None

    def met(self) -> None:
        """The store is held; who waits looks at the clock."""
        if self._since is None:
            self._since = self._clock.monotonic()
        self._wake()

    def over(self) -> None:
        """The store is free."""
        if self._since is not None:
            self._since = None
            self._wake()

    async def end(self) -> None:
        """Wait for its end; raises Stalled when the wait that all share is over."""
        while (since := self._since) is not None:
            if self._clock.monotonic() - since >= PATIENCE:
                raise Stalled
            loop = asyncio.get_running_loop()
            with self._lock:
                event = self._waiting.setdefault(loop, asyncio.Event())
            if self._since is not None:
                await event.wait()

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for loop, event in waiting.items():
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(event.set)
