"""Stopping when a signal says so."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

GRACE = 5.0
"""Seconds that running calls have to end in, whichever way the server is told to stop."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_on_signals(stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The first SIGINT or SIGTERM stops gracefully; the next one ends the process at once."""

    def on_signal(*_: Any) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
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
