"""Keeps one server's calls from taking more room than is theirs."""

from __future__ import annotations

from types import TracebackType

import anyio

WAITING = 8


class Full(Exception):
    """Too many wait already."""


class Bulkhead:
    """So many calls at a time; a few times as many may wait, the rest is refused."""

    def __init__(self, calls: int) -> None:
        self._free = anyio.Semaphore(calls, fast_acquire=True)
        self._room = calls * WAITING

    async def __aenter__(self) -> None:
        if self._free.value == 0 and self._free.statistics().tasks_waiting >= self._room:
            raise Full
        await self._free.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._free.release()
