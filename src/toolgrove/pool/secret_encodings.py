"""How a secret may be spelt in a text, and how a text reads once its escapes are read."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import quote_plus, unquote_to_bytes

MIN_LENGTH = 4
"""A shorter value is found everywhere by chance; hiding it would tell more than it hides, and ruin every text."""
_MIN_ALIGNED = 6
_MIN_LINE = 16
_MAX_LINES = 256


class UnescapedText:
    """A text with its escapes read, and where each stretch of it came from."""

    def __init__(self, text: str, change: re.Pattern[str], read: Callable[[re.Match[str]], str]) -> None:
        pieces: list[str] = []
        self._at: list[int] = []
        self._from: list[int] = []
        self._read: list[bool] = []
        self._size = len(text)
        here = there = 0
        for token in change.finditer(text):
            between, plain = text[there : token.start()], read(token)
            for piece, source, is_read in ((between, there, False), (plain, token.start(), True)):
                if piece:
                    self._mark(here, source, is_read)
                    pieces.append(piece)
                    here += len(piece)
            there = token.end()
        self._mark(here, there, False)
        pieces.append(text[there:])
        self.text = "".join(pieces)

    def _mark(self, at: int, source: int, is_read: bool) -> None:
        self._at.append(at)
        self._from.append(source)
        self._read.append(is_read)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the source that became this one; an escape counts whole."""
        first = bisect_right(self._at, start) - 1
        last = bisect_right(self._at, end - 1) - 1
        begin = self._from[first] + (0 if self._read[first] else start - self._at[first])
        if not self._read[last]:
            return begin, self._from[last] + end - self._at[last]
        return begin, self._from[last + 1] if last + 1 < len(self._from) else self._size


_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
WIDEST = 12
# Each alternative begins with a character, not with a group: only then does the search skip to the next candidate.
_ESCAPE = re.compile(
    r"%[0-7][0-9A-Fa-f]|%[89A-Fa-f][0-9A-Fa-f](?:%[89A-Fa-f][0-9A-Fa-f])*"
    r"|\\u[dD][89ABab][0-9A-Fa-f]{2}\\u[dD][C-Fc-f][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}"
    r"|\\x[0-7][0-9A-Fa-f]|\\x[89A-Fa-f][0-9A-Fa-f](?:\\x[89A-Fa-f][0-9A-Fa-f])*|\\U[0-9A-Fa-f]{8}|\\[^uxU]"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});",
    re.DOTALL,
)
CUT_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]?|\\(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?|U[0-9A-Fa-f]{0,7})?|&#?[0-9A-Za-z]{0,8})\Z"
)
HALVES = "\ufffd" + "".join(map(chr, (*range(0x80, 0x100), *range(0xD800, 0xDC00))))
"""What the beginning of a character reads as while its end has not come yet."""
_WRAP = re.compile(r"\n[ \t]*|\r\n[ \t]*")


@lru_cache(maxsize=8_192)
def _plain(escape: str) -> str:
    if escape[0] == "%":
        return unquote_to_bytes(escape).decode("utf-8", "replace")
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[1] == "x":
        data = bytes.fromhex(escape.replace("\\x", ""))
        try:
            return data.decode()  # of bytes
        except UnicodeDecodeError:
            return data.decode("latin-1")  # of text
    if escape[1] == "U":
        code = int(escape[2:], 16)
        return chr(code) if code <= sys.maxunicode else escape
    if escape[1] == "u":
        return str(json.loads(f'"{escape}"'))
    return _SIMPLE.get(escape[1], escape[1])


def _read(found: re.Match[str]) -> str:
    return _plain(found.group())


READINGS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    ("%\\&", _ESCAPE, _read),
    ("\n", _WRAP, lambda found: ""),
)


def encodings(value: str) -> set[str]:
    """Every spelling of a value that is looked for as it stands."""
    once = _ESCAPE.sub(_read, value)  # a value that looks escaped itself changes when its text is read
    spelt = {value, value.strip(), once, _ESCAPE.sub(_read, once), value.replace(" ", "+"), quote_plus(value)}
    for plain in (value, value.strip()):
        data = plain.encode("utf-8", "surrogatepass")
        spelt.update((plain.lower(), plain.upper(), data.hex(), data.hex().upper()))
        for encoded in _base64(data):
            spelt.update((encoded, encoded.translate(_URL_SAFE)))
    lines = [line.strip() for line in value.splitlines()[:_MAX_LINES]]
    spelt.update(line for line in lines if len(line) >= _MIN_LINE and not line.startswith("-----"))
    spelt.update([_WRAP.sub("", one) for one in spelt if "\n" in one])
    return {one for one in spelt if len(one) >= MIN_LENGTH}


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """The data in base64: alone, and the part that stays the same wherever it begins inside a longer text."""
    yield base64.b64encode(data).decode().rstrip("=")
    if len(data) >= _MIN_ALIGNED:
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + data).decode()
            yield encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
