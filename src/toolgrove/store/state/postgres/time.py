"""The time of the database: replicas whose own clocks differ agree on it."""

from __future__ import annotations

from toolgrove.types import Clock


class DatabaseClock:
    """Runs on by this machine's running clock from what the database said last, and never ahead of the database.

    Each transaction sets it after it has its turn, so what one replica dated before it committed lies in the past of
    the next one's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: float | None = None

    def heard(self, now: float) -> None:
        """Take what the database just said."""
        self._ahead = now - self._clock.monotonic()

    def wall(self) -> float:
        """Seconds since 1970, by the database; by this machine until that was heard."""
        return self._clock.wall() if self._ahead is None else self._clock.monotonic() + self._ahead

    def monotonic(self) -> float:
        """The same: no running clock of one machine means anything on another."""
        return self.wall()
