"""Slows down those who keep sending wrong tokens; nobody with a good one notices it."""

from __future__ import annotations

from collections import OrderedDict

from toolgrove.budgets import RefillingBudget
from toolgrove.types import Clock

FREE = 30
PAUSE = 0.125
LONGEST = 2.0
SOURCES = 1_000


class _Line:
    """Those of one address, one behind the other."""

    def __init__(self, clock: Clock) -> None:
        self.free = RefillingBudget(FREE / 60, burst=FREE, monotonic=clock.monotonic)
        self.end = clock.monotonic()


class SlowDown:
    """Some wrong tokens of an address are answered at once; then the next has to wait for the one before it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: OrderedDict[str, _Line] = OrderedDict()

    def pause(self, source: str) -> float | None:
        """How many seconds the answer to a wrong token has to wait; None where the line is too long to wait in."""
        line = self._lines.get(source)
        if line is None:
            line = self._lines[source] = _Line(self._clock)
            if len(self._lines) > SOURCES:
                self._lines.popitem(last=False)
        self._lines.move_to_end(source)
        if line.free.take():
            return 0.0
        now = self._clock.monotonic()
        turn = max(now, line.end) + PAUSE
        if turn - now > LONGEST:
            return None
        line.end = turn
        return turn - now
