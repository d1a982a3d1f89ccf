"""The runs under way, so that a gateway that shuts down can let them finish."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from toolgrove.web.run_log import Recording

Events = AsyncIterator[dict[str, Any]]


class Runs:
    """Counts the runs under way; once it drains, no new one begins."""

    def __init__(self) -> None:
        self.draining = False
        self._running = 0
        self._ended = anyio.Event()

    async def follow(self, events: Events, recording: Recording) -> Events:
        """The events of a run, which counts until its last one."""
        self._running += 1
        try:
            async for event in events:
                recording.take(event)
                yield event
        finally:
            recording.end()
            self._running -= 1
            self._ended.set()

    async def drain(self, seconds: float) -> None:
        """Take no new runs, and wait until those under way have ended or the time is over."""
        self.draining = True
        with anyio.move_on_after(seconds):
            while self._running:
                self._ended = anyio.Event()
                await self._ended.wait()
