"""What error messages are made with: cutting long texts, and guessing the word that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

NAME = 200
MESSAGE = 2048
"""How many characters of a name and of a message are repeated, in answers and in records."""
_LONGEST = 100
_MANY = 200


def brief(text: str, most: int) -> str:
    """Both ends of a text that is longer than it may be: a message begins with what is wrong and ends with advice."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 3]} … {text[-tail:]}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like the given one; cheap also among many thousands."""
    wanted = word.casefold()
    if len(wanted) > _LONGEST:
        return None
    room = max(2, len(wanted) // 4)
    near = {name.casefold(): name for name in known if abs(len(name) - len(wanted)) <= room}
    if len(near) > _MANY:
        near = dict(islice(((key, name) for key, name in near.items() if key[:3] == wanted[:3]), _MANY))
    match = difflib.get_close_matches(wanted, near, n=1, cutoff=0.6)
    return near[match[0]] if match else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    match = closest(word, known)
    return f" Did you mean {match!r}?" if match else ""
