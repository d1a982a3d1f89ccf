"""Texts as a reader sees them, and the characters that no reader can see."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
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
_HIDDEN = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
"""Categories of Unicode that are shown as escapes, though a text that holds one is not refused for it."""
_TAB = frozenset("\t")
_LAYOUT = frozenset("\n\t")
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
    """The text with its unseen characters as JSON escapes, so that JSON stays JSON; tabs and line ends stay."""
    return _replaced(text, _LAYOUT, _escaped)


def visible_json(value: Any) -> str:
    """A value as JSON that people can read, still JSON where characters are escaped."""
    return visible(json.dumps(value, indent=2, ensure_ascii=False))


def one_line(text: str) -> str:
    """The same with its line ends escaped as well: what is quoted in it cannot forge a second line."""
    return _replaced(text, _TAB, _escaped)


def stripped(text: str) -> str:
    """The text without its unseen characters; tabs, line ends and joiners inside an emoji stay."""
    hidden = _hidden(text, _LAYOUT)
    if not hidden:
        return text
    joiners = {found.start() for found in _JOINED.finditer(text)}
    return "".join(one for at, one in enumerate(text) if one not in hidden or at in joiners)


def blanked(text: str) -> str:
    """The text with a space for every unseen character, tabs and line ends included."""
    return _replaced(text, frozenset(), lambda character: " ")


def _replaced(text: str, kept: frozenset[str], instead: Callable[[str], str]) -> str:
    hidden = _hidden(text, kept)
    return "".join(instead(one) if one in hidden else one for one in text) if hidden else text


def _hidden(text: str, kept: frozenset[str]) -> set[str]:
    """The unseen characters in a text; each of its different characters is looked at once."""
    if text.isascii() and text.isprintable():
        return set()
    return {one for one in set(text) - kept if not _shows(one)}


def _shows(character: str) -> bool:
    return unicodedata.category(character) not in _HIDDEN and _UNSEEN.match(character) is None


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]
