"""Imports that end: one that exits or never returns fails alone."""

import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class ImportFailed(ValueError):
    """A file could not be imported; the message names it and says why."""


def in_time(seconds: float, file: Path, work: Callable[[], Any]) -> Any:
    """The result of the work, which runs in a thread: only a thread can be left behind if it never ends."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name=f"import of {file.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        if _is_busy(thread):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        raise ImportFailed(
            f"{file}: its import did not end within {seconds:g} s (the import budget). "
            "Keep what serves or waits under if __name__ == '__main__':"
        )
    if failures and isinstance(failures[0], Exception):
        raise failures[0]
    if failures:
        raise ImportFailed(f"{file}: its import ended with {failures[0]!r}") from failures[0]
    return results[0]


def _is_busy(thread: threading.Thread) -> bool:
    """Tell a loop, which an exception ends, from a wait.

    A wait costs nothing. An exception that it never takes stays pending, and a traced Python 3.11 then spins for ever.
    """
    if sys.platform != "linux" or thread.ident is None:  # elsewhere there is no clock of another thread
        return False
    clock = time.pthread_getcpuclockid(thread.ident)
    before = time.clock_gettime(clock)
    thread.join(0.2)
    return thread.is_alive() and time.clock_gettime(clock) > before


def contained(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, in which an exit is an error like others."""

    @functools.wraps(work)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return work(*args, **options)
        except SystemExit as error:
            raise RuntimeError(f"the module ended with {error!r}") from error

    return run
