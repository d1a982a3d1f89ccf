"""Stops calls to a server that fails time after time; one call in a while finds out whether it is well again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolgrove.pool.mcp.faults import Busy, Expired, Fault, Rejected, ScopeMissing
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


class Breakers:
    """One for what the server does, and one for each agent whose calls it does not answer in time.

    An agent that asks for what takes too long says nothing about the server: it alone is stopped.
    """

    def __init__(self, clock: Clock, random: Callable[[], float]) -> None:
        self._clock, self._random = clock, random
        self._of_all = Breaker(clock, random)
        self._of_one: dict[str, Breaker] = {}

    def refusal(self, agent: str) -> float | None:
        """The seconds to wait where the calls of an agent are stopped."""
        return next((wait for one in self._both(agent) if (wait := one.refusal()) is not None), None)

    @contextmanager
    def watching(self, agent: str) -> Iterator[None]:
        """Let a call through, and learn from how it ends."""
        for one in self._both(agent):
            one.admit()
        try:
            yield
        except (Rejected, Busy, ScopeMissing):
            self._answered(agent)
            raise
        except Fault as fault:
            if not isinstance(fault, Expired):  # whose request is sent once more
                self._of_all.failed()
            raise
        else:
            self._answered(agent)
        finally:  # a caller that left before the answer has learned nothing
            for one in self._both(agent):
                one.abandoned()

    def timed_out(self, agent: str) -> None:
        """It did not answer an agent in time."""
        self._of_one.setdefault(agent, Breaker(self._clock, self._random)).failed()

    def _answered(self, agent: str) -> None:
        for one in self._both(agent):
            one.succeeded()

    def _both(self, agent: str) -> tuple[Breaker, ...]:
        slow = self._of_one.get(agent)
        return (self._of_all,) if slow is None else (self._of_all, slow)
