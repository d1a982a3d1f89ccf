"""Whole numbers as people type them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_DIGITS = 9


def whole_number(what: str, low: int = 0, high: int = 10**_DIGITS) -> Callable[[str], int]:
    """Reads a number within bounds; the error says that anything else is not `what`."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else -1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return number

    return read


depth = whole_number("a depth: 0 is the agent itself, 1 a sub-agent, and so on")
port = whole_number("a port from 0 to 65535", high=65_535)
