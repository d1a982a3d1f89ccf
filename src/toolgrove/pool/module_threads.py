"""Whose the threads of modules are: one that a module leaves behind counts for the agent that left it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from apcore_files.module_runs import Work
from toolgrove.pool.fair_shares import Place


class Occupied:
    """The place of one call. Threads that run on when its caller leaves keep counting for the agent until they end."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._running = 0
        self._left = False

    def occupies(self) -> Callable[[], Work]:
        """What the context of the call is given."""

        def begin() -> Work:
            with self._lock:
                self._running += 1
            return self._end

        return begin

    def leave(self) -> None:
        """The caller has its answer, or waits no more."""
        with self._lock:
            self._left = True
            running = self._running
        if running:
            self._place.lose()
        else:
            self._place.give_back()

    def _end(self) -> None:
        """Called in the thread."""
        with self._lock:
            self._running -= 1
            is_over = self._left and not self._running
        if is_over:
            with suppress(RuntimeError):  # the loop is closed, and its shares with it
                self._loop.call_soon_threadsafe(self._place.give_back)
