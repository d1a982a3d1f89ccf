"""Stopping when a signal says so, within one budget."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

GRACE = 5.0
"""Seconds from being told to stop until everything has stopped: one budget, which everything shares."""
LAST_WORDS = 1.2
"""The last of them, which running calls do not get: who waits is told, and streams end."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop(asyncio.Event):
    """Set to stop. Whoever holds it knows what is left of the budget, so nobody adds a wait of their own to it.

    `at_last` is called in a thread when the budget is used up, for whoever may end the process then. With `drain`, the
    first signal only sets `leaving`, and the budget starts so many seconds later: time for a load balancer to look.
    """

    def __init__(
        self, at_last: Callable[[], object] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._at_last = at_last
        self._clock = clock
        self._since: float | None = None
        self.drain = 0.0
        self.leaving = asyncio.Event()

    def leave(self) -> None:
        """Go on for as long as draining takes, then stop."""
        self.leaving.set()
        asyncio.get_running_loop().call_later(self.drain, self.set)

    def begin(self) -> None:
        """Start the budget, from any thread; the loop may be too busy to be told at once."""
        if self._since is not None:
            return
        self._since = self._clock()
        if self._at_last is not None:
            timer = threading.Timer(GRACE, self._at_last)
            timer.daemon = True
            timer.start()

    def set(self) -> None:
        """Stop, and start the budget."""
        self.begin()
        super().set()

    def left(self, reserve: float = 0.0) -> float:
        """Seconds that are left, apart from a reserve for those whose turn comes later."""
        gone = 0.0 if self._since is None else self._clock() - self._since
        return max(0.0, GRACE - reserve - gone)


@contextlib.contextmanager
def stop_on_signals(stop: Stop, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The first SIGINT or SIGTERM stops gracefully; the next one ends the process at once.

    Where there is something to drain, the first begins that, and the second stops.
    """
    signals = 0

    def on_signal(*_: Any) -> None:
        nonlocal signals
        signals += 1
        if stop.drain > 0 and signals == 1:
            loop.call_soon_threadsafe(stop.leave)
            return
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        stop.begin()
        loop.call_soon_threadsafe(stop.set)

    if threading.current_thread() is not threading.main_thread():  # whoever owns the signals stops us
        yield
        return
    before = {each: signal.signal(each, on_signal) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
