"""Half characters: lone surrogates, which JSON can write as `\\ud800` and UTF-8 cannot write at all.

Python and JavaScript keep a text that holds one; Rust, Go, Java and most readers of JSON refuse the whole answer that
it stands in. So the rule is: nothing with half a character is taken in. Arguments of every tool and results of modules
are refused by `json_value.detached`, JSON that stands in a text by `strict_json.decode`, and what neither of them sees
by `refuse_half`. What an older store holds, and what a refused call was given, is shown with a replacement character.
"""

from __future__ import annotations

import re
from typing import Any

from toolgrove.errors import NotJson

PROBLEM = "holds half a character (a lone surrogate)"
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPE = "\\ud"
"""How half a character begins in JSON that is ASCII; so does any character beyond the first 65,536."""


def has_half(text: str) -> bool:
    """Whether a text cannot be written as UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_half(text: str, path: str) -> None:
    """Refuse a text of a request that holds half a character; `path` says where it stands."""
    if has_half(text):
        raise NotJson(path=path, problem=PROBLEM)


def holds_half(value: Any) -> bool:
    """Whether some text of a JSON value, a key included, holds half a character."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if has_half(one):
                return True
        elif isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
    return False


def whole_text(text: str) -> str:
    """The text, with a replacement character for each half of one."""
    return _HALF.sub("\ufffd", text) if has_half(text) else text


def whole(value: Any) -> Any:
    """The same of a JSON value; the value itself where nothing had to be replaced."""
    return _replaced(value) if holds_half(value) else value


def may_hold_half(written: str) -> bool:
    """Whether JSON in ASCII may hold half a character; where it says no, there is none."""
    return _ESCAPE in written


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(key) if isinstance(key, str) else key: _replaced(one) for key, one in value.items()}
    return [_replaced(one) for one in value] if isinstance(value, list | tuple) else value
