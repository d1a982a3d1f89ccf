"""The live stream of a project: every event to every console that watches, none of which holds up a call."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable

import anyio

from toolgrove.events import Event, Listener
from toolgrove.web.http_json import event_text

BACKLOG = 1_000
HEARTBEAT = 15.0
_WATCHING = event_text({"type": "watching"})
_HEARTBEAT = event_text({"type": "heartbeat"})


class Live:
    """Hands events on; a watcher that falls behind loses the oldest and is told how many."""

    def __init__(self, listen: Callable[[Listener], Callable[[], None]]) -> None:
        self._listen = listen
        self._watchers: set[_Watcher] = set()
        self._closed = False

    def _hear(self, event: Event) -> None:
        told = event_text(event.to_json())  # once, however many watch
        for watcher in self._watchers:
            watcher.put(told)

    async def watch(self) -> AsyncIterator[bytes]:
        """Every event from now on, as a stream carries it; a heartbeat while there is none."""
        watcher = _Watcher()
        if not self._watchers:
            self._end = self._listen(self._hear)  # while nobody watches, no event need be made
        self._watchers.add(watcher)
        try:
            yield _WATCHING
            while not self._closed:
                yield await watcher.next()
        finally:
            self._watchers.discard(watcher)
            if not self._watchers:
                self._end()

    def close(self) -> None:
        """Let every watcher go, after what it has not been told yet."""
        self._closed = True
        for watcher in self._watchers:
            watcher.wake()


class _Watcher:
    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._lost = 0
        self._came = anyio.Event()

    def put(self, event: bytes) -> None:
        if len(self._events) >= BACKLOG:
            self._events.popleft()
            self._lost += 1
        self._events.append(event)
        self._came.set()

    def wake(self) -> None:
        self._came.set()

    async def next(self) -> bytes:
        if not self._events:
            self._came = anyio.Event()
            with anyio.move_on_after(HEARTBEAT):
                await self._came.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return event_text({"type": "events_lost", "count": lost})
        return self._events.popleft() if self._events else _HEARTBEAT
