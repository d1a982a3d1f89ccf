"""Short texts at the command line: times and names as people read them, whole numbers as they type them."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Callable
from datetime import datetime

from rich.text import Text

_DIGITS = 9


def local_time(seconds: float) -> Text:
    """A point in time by the clock of this machine."""
    return Text(datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S"))


def signature() -> str:
    """Who decides at this command line; no agent can be called so, since names have no colon."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user entry
        return "cli:unknown"


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
