"""Points in time as text: UTC, ISO 8601, to the second where people read it and to the millisecond in records."""

from __future__ import annotations

import datetime
from functools import lru_cache


def to_seconds(wall: float) -> str:
    """A moment to the second, such as `2026-03-01T09:30:00+00:00`."""
    return f"{_second(round(wall * 1_000_000) // 1_000_000)}+00:00"


def to_milliseconds(wall: float) -> str:
    """A moment to the millisecond, such as `2026-03-01T09:30:00.125+00:00`."""
    seconds, micros = divmod(round(wall * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros // 1000:03}+00:00"


@lru_cache(maxsize=4)
def _second(wall: int) -> str:
    """Writing a date costs more than the rest of an audit record, and thousands share one."""
    return datetime.datetime.fromtimestamp(wall, datetime.UTC).isoformat()[:19]
