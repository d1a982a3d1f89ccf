"""Leading a standard stream elsewhere for a while."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def diverted(fd: int, elsewhere: int) -> Iterator[int]:
    """Let a standard stream lead elsewhere for a while; its real end has another descriptor meanwhile."""
    private = os.dup(fd)  # never closed: a thread may still wait at it
    _flush()
    os.dup2(elsewhere, fd)
    try:
        yield private
    finally:
        _flush()  # what was printed meanwhile must not come out at the real end
        os.dup2(private, fd)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
