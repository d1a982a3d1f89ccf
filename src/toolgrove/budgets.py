"""Budgets over time, by a monotonic clock, so that setting the clock refills nothing; what happens when one is spent
is up to its owner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Monotonic = Callable[[], float]


class RefillingBudget:
    """Refills by `rate` a second, up to `burst`; for amounts such as bytes, where a short burst is fine."""

    def __init__(self, rate: float, *, burst: float, monotonic: Monotonic) -> None:
        self._rate = rate
        self._burst = self._left = burst
        self._monotonic = monotonic
        self._then = monotonic()

    def take(self, amount: float = 1.0) -> bool:
        """Take an amount out, if there is that much."""
        if not self.has(amount):
            return False
        self._left -= amount
        return True

    def has(self, amount: float = 1.0) -> bool:
        """Whether there is that much; time that passes while the budget is full adds nothing."""
        now = self._monotonic()
        passed, self._then = now - self._then, now
        self._left = min(self._left + passed * self._rate, self._burst)
        return amount <= self._left


class MovingWindow:
    """So many events in any stretch of so many seconds; remembers each event that still counts."""

    def __init__(self, amount: int, seconds: float, *, monotonic: Monotonic) -> None:
        self._amount = amount
        self._seconds = seconds
        self._monotonic = monotonic
        self._events: deque[float] = deque()

    def admit(self) -> float | None:
        """Count an event; if there is no room, nothing is counted, and the answer is the seconds until there is."""
        wait = self.wait()
        if wait is None:
            self._events.append(self._monotonic())
        return wait

    def note(self) -> None:
        """Count an event that somebody else let through."""
        self._forget()
        self._events.append(self._monotonic())

    def wait(self, amount: int | None = None) -> float | None:
        """The seconds until there is room for an event, or for one of so many; None where there is."""
        self._forget()
        events, amount = self._events, self._amount if amount is None else amount
        return events[-amount] + self._seconds - self._monotonic() if len(events) >= amount else None

    def _forget(self) -> None:
        now, events = self._monotonic(), self._events
        while events and events[0] <= now - self._seconds:
            events.popleft()
