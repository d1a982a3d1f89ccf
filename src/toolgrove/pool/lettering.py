"""Texts as a reader sees them, and the characters that no reader can see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Between two emoji (each with its presentation selector or skin tone), the joiner makes one picture of them.
_JOINED = re.compile(f"(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])")
_UNSEEN = re.compile(
    "(?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029])"
    "|(?P<tag>[\U000e0000-\U000e007f])"
    "|(?P<direction>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])"
    "|(?P<selector>[\ufe00-\ufe0d\U000e0100-\U000e01ef\u180b-\u180f])"
    "|(?P<invisible>[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a])"
    "|(?P<surrogate>[\ud800-\udfff])"
    "|(?P<noncharacter>[\ufdd0-\ufdef\ufffe\uffff])"
)
_KINDS = {
    "control": "control character",
    "tag": "invisible tag character",
    "direction": "text direction control",
    "selector": "variation selector",
    "invisible": "invisible character",
    "surrogate": "half character",
    "noncharacter": "noncharacter",
}


def unseen(text: str) -> str | None:
    """The first character of a text that a reader cannot see, in words; joiners inside an emoji are fine."""
    if text.isascii() and text.isprintable():
        return None
    found = _UNSEEN.search(_JOINED.sub("", text))
    return None if found is None else f"{_KINDS[str(found.lastgroup)]} U+{ord(found.group()):04X}"


def visible(text: str) -> str:
    """The text with its unseen characters escaped; for showing what was refused."""
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a JSON value, keys included, with the path that leads to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else str(key)
            yield inner, str(key)
            yield from texts(item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, f"{path}[{index}]")
