"""The events of one run, from where they happen to whoever reads its stream."""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Mapping
from typing import Any

import anyio

from toolgrove.events import Event, ModelUsed, ToolFailed, ToolSucceeded

BACKLOG = 1_000


class RunEvents:
    """Holds what the reader has not taken yet; nothing in a run ever waits for the reader.

    A reader who falls behind loses events and is told how many. Failures are lost last: when there is no more room for
    other events, there is still room for as many failures. What is counted is exact in any case: calls, those of the
    agent whose run it is apart from those `delegated` to others, and the tokens of models.
    """

    def __init__(self, chain: tuple[str, ...]) -> None:
        self._chain = chain
        self._succeeded = {True: 0, False: 0}
        self._failed = {True: 0, False: 0}
        self._usage: dict[str, dict[str, int]] = {}
        self._events: deque[Event] = deque()
        self._lost = 0
        self._came = anyio.Event()

    def publish(self, event: Event) -> None:
        """Take an event; how a call ended is counted, and tokens are added up."""
        if isinstance(event, ModelUsed):
            self._add_up(event)
            return
        if isinstance(event, ToolSucceeded):
            self._succeeded[event.chain == self._chain] += 1
        elif isinstance(event, ToolFailed):
            self._failed[event.chain == self._chain] += 1
        if len(self._events) < BACKLOG * (2 if isinstance(event, ToolFailed) else 1):
            self._events.append(event)
        else:
            self._lost += 1
        self._came.set()

    @property
    def own(self) -> Mapping[str, int]:
        """How many of the agent's own calls went well, and how many did not."""
        return {"succeeded": self._succeeded[True], "failed": self._failed[True]}

    @property
    def delegated(self) -> Mapping[str, int]:
        """The same of its sub-agents, at any depth."""
        return {"succeeded": self._succeeded[False], "failed": self._failed[False]}

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """The tokens that each model read and wrote, as far as their endpoints said."""
        return self._usage

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

    def _add_up(self, used: ModelUsed) -> None:
        sums = self._usage.setdefault(used.model, {"input": 0, "output": 0})
        sums["input"] += used.input
        sums["output"] += used.output
