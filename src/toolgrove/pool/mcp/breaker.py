"""Stops calls to a server that fails time after time; one call in a while finds out whether it is well again."""

from __future__ import annotations

from collections.abc import Callable

from toolgrove.types import Clock

FAILURES = 5
OPEN = 10.0


class Breaker:
    """Opens after so many failures in a row."""

    def __init__(self, clock: Clock, random: Callable[[], float]) -> None:
        self._clock = clock
        self._random = random
        self._failures = 0
        self._until = 0.0
        self._probing = False

    def refusal(self) -> float | None:
        """The seconds to wait where calls are stopped, told so that not all come back at once."""
        if self._failures < FAILURES:
            return None
        left = self._until - self._clock.monotonic()
        if left <= 0 and not self._probing:
            return None
        return round(max(left, 0.5) * (1 + self._random() / 2), 3)

    def admit(self) -> None:
        """Let a call through; after a pause it is the one that finds out."""
        self._probing = self._failures >= FAILURES

    def succeeded(self) -> None:
        """The server answered, whatever it said."""
        self._failures = 0
        self._probing = False

    def failed(self) -> None:
        """The server did not answer, or not so that anyone could read it."""
        self._failures += 1
        self._probing = False
        if self._failures >= FAILURES:
            self._until = self._clock.monotonic() + OPEN

    def abandoned(self) -> None:
        """The caller left before the answer, so nothing was learned."""
        self._probing = False
