"""Keeps one server's calls from taking more room than is theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

WAITING = 8


class Full(Exception):
    """Too many wait already, or it took too long."""


class Bulkhead:
    """So many calls at a time; a few times as many may wait, the rest is refused."""

    def __init__(self, calls: int) -> None:
        self._free = anyio.Semaphore(calls, fast_acquire=True)
        self._room = calls * WAITING

    @asynccontextmanager
    async def place(self, deadline: float) -> AsyncIterator[None]:
        """A place for one call, if there is one in time."""
        try:
            self._free.acquire_nowait()
        except anyio.WouldBlock:
            await self._wait(deadline)
        try:
            yield
        finally:
            self._free.release()

    async def _wait(self, deadline: float) -> None:
        if self._free.statistics().tasks_waiting >= self._room:
            raise Full
        with anyio.CancelScope(deadline=deadline) as scope:
            await self._free.acquire()
        if scope.cancelled_caught:
            raise Full
