"""JSON as strangers write it: what Python's own reader lets through and JSON does not know is refused."""

from __future__ import annotations

import json
import math
from typing import Any


class NotANumber(ValueError):
    """A number that JSON cannot carry; the message speaks of the text that holds it."""


def _refuse(name: str) -> Any:
    raise NotANumber(f"it holds {name}, which is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotANumber("it holds a number beyond all bounds")
    return value


decode = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode
"""The value of a text; ValueError where it is no JSON, RecursionError where it is nested without end."""
