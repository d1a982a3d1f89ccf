"""Short texts at the command line: times and names as people read them."""

from __future__ import annotations

import getpass
from datetime import datetime

from rich.text import Text


def local_time(seconds: float) -> Text:
    """A point in time by the clock of this machine."""
    return Text(datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S"))


def signature() -> str:
    """Who decides at this command line; no agent can be called so, since names have no colon."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user entry
        return "cli:unknown"
