"""A point in time as a person at this machine reads it."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text


def moment(seconds: float) -> Text:
    """The local date and time."""
    return Text(datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S"))
