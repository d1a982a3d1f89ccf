"""The events of one run, from where they happen to whoever reads its stream."""

from __future__ import annotations

from asyncio import Future
from collections import deque
from typing import Any

import anyio

from toolgrove.events import Event, ToolFailed, ToolSucceeded

BACKLOG = 1_000


class RunEvents:
    """Holds what the reader has not taken yet; nothing in a run ever waits for the reader.

    A reader who falls behind loses events and is told how many. Failures are lost last: when there is no more room for
    other events, there is still room for as many failures. The counts are exact in any case.
    """

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self._events: deque[Event] = deque()
        self._lost = 0
        self._came = anyio.Event()

    def publish(self, event: Event) -> None:
        """Take an event; how a call ended is counted."""
        self.succeeded += isinstance(event, ToolSucceeded)
        self.failed += isinstance(event, ToolFailed)
        if len(self._events) < BACKLOG * (2 if isinstance(event, ToolFailed) else 1):
            self._events.append(event)
        else:
            self._lost += 1
        self._came.set()

    async def next(self, work: Future[Any]) -> dict[str, Any] | None:
        """The next event; None once the work is done and every event was read."""
        while not (self._events or self._lost or work.done()):
            self._came = anyio.Event()
            await self._came.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return {"type": "events_lost", "count": lost}
        return self._events.popleft().to_json() if self._events else None

    def wake(self, _: Future[Any]) -> None:
        """Let the reader look again, since the work is done."""
        self._came.set()
