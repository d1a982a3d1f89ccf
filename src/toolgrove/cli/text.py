"""Short texts at the command line: times and names as people read them."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module

from rich.text import Text


def local_time(seconds: float) -> Text:
    """A point in time by the clock of this machine."""
    return Text(datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S"))


OPERATOR_NAME = "operator"
"""What people call whoever runs the gateway."""


def named(chain: Sequence[str]) -> str:
    """An agent, and those it works for."""
    *above, name = chain
    return f"{name} within {' > '.join(above)}" if above else name


def user_name(number: int) -> str:
    """A user of this machine."""
    try:
        return str(import_module("pwd").getpwuid(number).pw_name)
    except (ImportError, KeyError):  # not every system has it, nor every user an entry
        return str(number)


def signature() -> str:
    """Who decides at this command line; no agent can be called so, since names have no colon."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user entry
        return "cli:unknown"
