"""Which process claimed an approval, told apart from a later one that was given the same number."""

from __future__ import annotations

import os
from pathlib import Path

_BITS = 22
"""Linux has no process number beyond these; what stands above them is when the process began."""


def claimant() -> int:
    """This process."""
    return _mark(os.getpid()) or os.getpid()


def is_other_alive(mark: int) -> bool:
    """Whether it is another process than this one, and still there.

    A mark without a beginning is from a system that does not tell, or from an older version: then the number must do.
    """
    if mark in (claimant(), os.getpid()):
        return False
    number = mark & ((1 << _BITS) - 1)
    if mark == number or _mark(os.getpid()) is None:
        return _is_there(number)
    return _mark(number) == mark


def _mark(number: int) -> int | None:
    """The number of a process together with when it began, counted from the start of the machine."""
    try:
        # The name comes second, in brackets, and may hold anything.
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return int(fields[19]) << _BITS | number
    except (OSError, ValueError, IndexError):
        return None


def _is_there(number: int) -> bool:
    if os.name != "posix":  # elsewhere, a signal of no effect is not one
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
