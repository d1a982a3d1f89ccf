"""Reads JSON, and refuses what only Python's own reader takes for JSON; every refusal is a ValueError.

ValueError
├── json.JSONDecodeError   it is no JSON at this place
├── UnicodeError           its text is not UTF-8
│   └── HalfCharacter      a text in it holds half a character
├── NotANumber             it holds NaN, Infinity or a number beyond all bounds
├── RepeatedKey            an object has one key twice
└── TooDeep                it is nested deeper than the reader can follow
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from toolgrove.notation.half_characters import PROBLEM, has_half, holds_half

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class HalfCharacter(UnicodeError):
    """A text that cannot be written as UTF-8, as an escape such as `\\ud800` makes it."""


class NotANumber(ValueError):
    """A number that JSON cannot carry."""


class RepeatedKey(ValueError):
    """A key of which only the last value would count."""


class TooDeep(ValueError):
    """A text that is all brackets."""


def _refuse(name: str) -> Any:
    raise NotANumber(f"it holds {name}, which is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotANumber("it holds a number beyond all bounds")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise RepeatedKey(f"key {twice[:64]!r} stands twice in one object")
    return whole


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_UNIQUE = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)


def decode(text: str, *, unique: bool = False, halves: bool = False) -> Any:
    """The value of a text; `unique` refuses repeated keys, which a person who edits a file never means.

    With `halves` the caller replaces half characters itself.
    """
    try:
        value = (_UNIQUE if unique else _DECODER).decode(text)
    except RecursionError:
        raise TooDeep("it is nested too deeply") from None
    if not halves and (_HALF.search(text) or has_half(text)) and holds_half(value):
        raise HalfCharacter(f"it {PROBLEM}")
    return value


def decode_utf8(raw: bytes) -> Any:
    """The value of UTF-8 text in which every character is whole, so that it can be written as UTF-8 again."""
    return decode(raw.decode())
