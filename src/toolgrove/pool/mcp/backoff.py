"""How long to wait before a server is tried again."""

from __future__ import annotations

from collections.abc import Callable

FIRST = 0.5
LONGEST = 30.0
STABLE = 30.0


class Backoff:
    """Doubles from one failure to the next; a server that stayed up for a while begins anew."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._pause = FIRST

    def pause(self, lived: float) -> float:
        """The seconds to wait after a connection that lasted so long, spread so that not all come at once."""
        if lived >= STABLE:
            self._pause = FIRST
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST)
        return pause * (0.75 + self._random() / 4)
