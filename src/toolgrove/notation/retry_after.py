"""The Retry-After header of HTTP: seconds, or a date; anything else says nothing."""

from __future__ import annotations

import math
import re
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
_SECONDS = re.compile(r"[0-9]{1,9}")


def seconds_to_wait(header: str, *, now: float | None) -> float | None:
    """How long a server asks us to wait, a day at most; a date is of no use where `now` is not known."""
    header = header.strip()
    if _SECONDS.fullmatch(header):
        return min(float(header), LONGEST)
    when = http_date(header)
    if when is None or now is None:
        return None
    return min(max(math.ceil(when - now), 1.0), LONGEST)


def http_date(header: str) -> float | None:
    """The moment that a header names, in seconds since the epoch."""
    try:
        moment = parsedate_to_datetime(header)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
