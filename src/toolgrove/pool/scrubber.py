"""Takes known secret values out of text, also where they are encoded, split over chunks, or both.

A value is looked for as it is, in base64 at every alignment, in hex and in other letter case; then again in what the
text becomes when its escapes (percent, backslash, entity) are read, and when its lines are joined.
"""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

MIN_LENGTH = 4
"""A shorter value is found everywhere by chance; hiding it would tell more than it hides, and ruin every text."""
_MIN_ALIGNED = 6
_MIN_LINE = 16
_MAX_LINES = 256
_MAX_ESCAPES = 300_000
_DEPTH = 2
_TELLING = 4
_HEAD = 16
_LONG = 4_096


class Span(NamedTuple):
    """A stretch of text that gives a secret away."""

    start: int
    end: int
    label: str


class Scrubber:
    """The values that must not get out, by the names that may."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._heads: re.Pattern[str] | None = None
        self._starts: dict[str, list[str]] = {}
        self._shortest = self._longest = 0
        self._digits = False

    def __repr__(self) -> str:
        return f"<Scrubber of {len(set(self._labels.values()))} secrets>"

    def learn(self, value: str, label: str) -> bool:
        """Hide this value from now on; False if it is too short to be hidden."""
        if len(value) < MIN_LENGTH:
            return False
        if value in self._labels:
            return True
        labels = dict(self._labels)
        for form in _forms(value):
            labels.setdefault(form, label)
        starts: dict[str, list[str]] = {}
        for form in labels:
            for size in range(1, _TELLING + 1):
                starts.setdefault(form[:size], []).append(form)
        self._labels, self._starts = labels, starts
        self._shortest, self._longest = min(map(len, labels)), max(map(len, labels))
        self._digits = self._digits or re.fullmatch(r"-?[\d.]+", value) is not None
        self._heads = re.compile("|".join(map(re.escape, sorted({form[:_HEAD] for form in labels}))))
        return True

    def text(self, text: str) -> str:
        """The text with `[secret NAME]` in place of every value."""
        return _replaced(text, self.spans(text))

    def value(self, value: Any) -> Any:
        """The same for a JSON value: its strings, its keys, and numbers that are a secret's digits."""
        return value if self._heads is None else self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            whole: dict[Any, Any] = {}
            for key, item in value.items():
                name = self.text(key) if isinstance(key, str) else key
                whole[_free(name, whole)] = self._value(item)
            return whole
        if isinstance(value, list | tuple):
            return [self._value(item) for item in value]
        if self._digits and isinstance(value, int | float) and not isinstance(value, bool):
            shown = self.text(str(value))
            return value if shown == str(value) else shown
        return value

    def spans(self, text: str) -> list[Span]:
        """Where secrets stand, in order and without overlap."""
        if self._heads is None or len(text) < self._shortest:
            return []
        if "\\" not in text and "%" not in text and "&" not in text and "\n" not in text and not self._hit(text):
            return []
        if sum(map(text.count, "\\%&\n")) > _MAX_ESCAPES:  # reading them all would hold up every other call
            return [Span(0, len(text), "unknown: too many escapes to check")]
        return _merged(sorted(self._found(text, _DEPTH)))

    def opening(self, text: str) -> Span:
        """The stretch at the end that may be the beginning of a secret; an empty one if there is none."""
        if self._heads is None:
            return Span(len(text), len(text), "")
        start = max(0, len(text) - self._longest * _WIDEST)
        found = self._opening(text[start:], _DEPTH)
        return Span(start + found.start, len(text), found.label)

    @property
    def longest(self) -> int:
        """The most characters that a secret can fill."""
        return self._longest * _WIDEST

    def _hit(self, text: str) -> bool:
        if len(text) < _LONG:
            return self._heads is not None and self._heads.search(text) is not None
        return any(form in text for form in self._labels)

    def _found(self, text: str, depth: int) -> Iterator[Span]:
        if self._hit(text):
            for form, label in self._labels.items():
                at = text.find(form)
                while at >= 0:
                    yield Span(at, at + len(form), label)
                    at = text.find(form, at + 1)
        if depth:
            for marks, change, read in _READINGS:
                if any(mark in text for mark in marks):
                    plain = change.sub(read, text)
                    # Where a character came from is asked only if something is there.
                    spans = list(self._found(plain, depth - 1)) if plain != text else []
                    if spans:
                        view = _View(text, change, read)
                        yield from (Span(*view.origin(span.start, span.end), span.label) for span in spans)

    def _opening(self, text: str, depth: int) -> Span:
        cut = _CUT_ESCAPE.search(text) if depth else None
        found = [self._begins(text), self._begins(_HALF.sub("", text))]  # the last character may be there by half
        whole = text
        if cut is not None:
            whole = text[: cut.start()]
            found += [Span(cut.start(), len(text), "")] if cut.group() else []
            found.append(self._begins(whole))
        if depth:
            view = _View(whole, _ESCAPE, _read)
            if view.text != whole:
                inner = self._opening(view.text, depth - 1)
                if inner.start < inner.end:
                    found.append(Span(view.origin(inner.start, inner.end)[0], len(text), inner.label))
        return min(found)

    def _begins(self, text: str) -> Span:
        """Where the text ends with a beginning of a form."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            for form in self._starts.get(text[at : at + _TELLING], ()):
                if form.startswith(text[at:]):
                    return Span(at, len(text), self._labels[form])
        return Span(len(text), len(text), "")


class StreamScrubber:
    """Scrubs text that comes in pieces: what may be the beginning of a secret is held back until it is clear."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be shown so far."""
        text = self._held + text
        spans = self._scrubber.spans(text)
        cut = self._scrubber.opening(text).start
        for span in spans:
            if span.start < cut < span.end:  # the end of one may be the beginning of another, but not for ever
                cut = span.start if len(text) - span.start <= 2 * self._scrubber.longest else span.end
        self._held = text[cut:]
        return _replaced(text[:cut], [span for span in spans if span.end <= cut])

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return self._scrubber.text(rest)


class MessageScrubber:
    """Scrubs messages that belong together but are shown one by one: none is held back.

    A message that ends like the beginning of a secret loses that end, and the next one its continuation.
    """

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._before = ""

    def feed(self, message: str) -> str:
        """The message as it can be shown."""
        known = len(self._before)
        text = self._before + message
        spans = self._scrubber.spans(text)
        opening = self._scrubber.opening(text)
        if opening.label and opening.end - opening.start >= _TELLING:
            spans = _merged(sorted((*spans, opening)))
        self._before = text[opening.start :]
        own = [Span(max(s.start - known, 0), s.end - known, s.label) for s in spans if s.end > known]
        return _replaced(message, own)


class _View:
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
_WIDEST = 12
_ESCAPE = re.compile(
    r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+"
    r"|\\u[dD][89ABab][0-9A-Fa-f]{2}\\u[dD][C-Fc-f][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}"
    r"|\\x[0-7][0-9A-Fa-f]|(?:\\x[89A-Fa-f][0-9A-Fa-f])+|\\U[0-9A-Fa-f]{8}|\\[^uxU]"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});",
    re.DOTALL,
)
_CUT_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]?|\\(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?|U[0-9A-Fa-f]{0,7})?|&#?[0-9A-Za-z]{0,8})\Z"
)
_HALF = re.compile("[\ufffd\ud800-\udbff]+\\Z")
_WRAP = re.compile(r"[ \t]*\r?\n[ \t]*")


@lru_cache(maxsize=8_192)
def _plain(escape: str) -> str:
    if escape[0] == "%":
        return unquote_to_bytes(escape).decode("utf-8", "replace")
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[1] == "x":
        return bytes.fromhex(escape.replace("\\x", "")).decode("utf-8", "replace")
    if escape[1] == "U":
        code = int(escape[2:], 16)
        return chr(code) if code <= sys.maxunicode else escape
    if escape[1] == "u":
        return str(json.loads(f'"{escape}"'))
    return _SIMPLE.get(escape[1], escape[1])


def _read(found: re.Match[str]) -> str:
    return _plain(found.group())


_READINGS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    ("%\\&", _ESCAPE, _read),
    ("\n", _WRAP, lambda found: ""),
)


def _forms(value: str) -> set[str]:
    """Every spelling of a value that is looked for as it stands."""
    once = _ESCAPE.sub(_read, value)  # a value that looks escaped itself changes when its text is read
    forms = {value, value.strip(), once, _ESCAPE.sub(_read, once), value.replace(" ", "+"), quote_plus(value)}
    for plain in (value, value.strip()):
        data = plain.encode("utf-8", "surrogatepass")
        forms.update((plain.lower(), plain.upper(), data.hex(), data.hex().upper()))
        for encoded in _base64(data):
            forms.update((encoded, encoded.translate(_URL_SAFE)))
    lines = [line.strip() for line in value.splitlines()[:_MAX_LINES]]
    forms.update(line for line in lines if len(line) >= _MIN_LINE and not line.startswith("-----"))
    forms.update([_WRAP.sub("", form) for form in forms if "\n" in form])
    return {form for form in forms if len(form) >= MIN_LENGTH}


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """The data in base64: alone, and the part that stays the same wherever it begins inside a longer text."""
    yield base64.b64encode(data).decode().rstrip("=")
    if len(data) >= _MIN_ALIGNED:
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + data).decode()
            yield encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]


def _merged(spans: list[Span]) -> list[Span]:
    whole: list[Span] = []
    for span in spans:
        if whole and span.start < whole[-1].end:
            last = whole[-1]
            whole[-1] = Span(last.start, max(last.end, span.end), last.label)
        else:
            whole.append(span)
    return whole


def _replaced(text: str, spans: list[Span]) -> str:
    if not spans:
        return text
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], f"[secret {span.label}]")
        at = span.end
    return "".join((*pieces, text[at:]))


def _free(name: Any, taken: dict[Any, Any]) -> Any:
    """A key that is not taken: two secrets may leave the same mark."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
