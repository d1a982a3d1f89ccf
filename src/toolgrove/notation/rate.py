"""Rates as people write them, such as 60/minute, 5 per second or 100/2 hours."""

from __future__ import annotations

import re
from typing import NamedTuple

_RATE = re.compile(r"\s*+([0-9]{1,9})\s*+(?:/|per\b)\s*+([0-9]{1,4})?+\s*+([a-z]+?)s?\s*+", re.IGNORECASE)
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "month": 30 * 86_400, "year": 12 * 30 * 86_400}


class Rate(NamedTuple):
    """So many in any stretch of so many seconds."""

    amount: int
    seconds: int


def read_rate(text: str) -> Rate:
    """The rate that a text stands for; ValueError if it is none, or none that can be kept."""
    found = _RATE.fullmatch(text)
    unit = _SECONDS.get(found[3].lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a rate like 60/minute")
    times = int(found[2] or 1)
    if times == 0:
        raise ValueError(f"{text!r} is not a rate like 60/minute")
    return Rate(int(found[1]), times * unit)
