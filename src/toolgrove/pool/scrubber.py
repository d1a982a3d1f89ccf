"""Takes known secret values out of text, also where they are encoded, split over chunks, or both.

A value is looked for as it is, in base64 at every alignment, in hex and in other letter case; then again in what the
text becomes when percent signs, backslashes and entities are read as the escapes that they may be.
"""

from __future__ import annotations

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

MIN_LENGTH = 4
"""A shorter value is found everywhere by chance; hiding it would tell more than it hides, and ruin every text."""
_MIN_ALIGNED = 6
_MIN_LINE = 16
_MAX_LINES = 256
_MAX_ESCAPES = 500_000
_DEPTH = 2
_TELLING = 4


class Span(NamedTuple):
    """A stretch of text that gives a secret away."""

    start: int
    end: int
    label: str


class Scrubber:
    """The values that must not get out, by the names that may."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._shortest = 0
        self._digits = False

    def __repr__(self) -> str:
        return f"<Scrubber of {len(set(self._labels.values()))} secrets>"

    def learn(self, value: str, label: str) -> bool:
        """Hide this value from now on; False if it is too short to be hidden."""
        if len(value) < MIN_LENGTH:
            return False
        if value not in self._labels:
            labels = dict(self._labels)
            for form in _forms(value):
                labels.setdefault(form, label)
            longest_first = sorted(labels, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
            self._shortest = len(longest_first[-1])
            self._digits = self._digits or re.fullmatch(r"-?[\d.]+", value) is not None
            self._labels = labels
        return True

    def text(self, text: str) -> str:
        """The text with `[secret NAME]` in place of every value."""
        if len(text) < self._shortest or self._pattern is None:
            return text
        return _replaced(text, self.spans(text))

    def value(self, value: Any) -> Any:
        """The same for a JSON value: its strings, its keys, and numbers that are a secret's digits."""
        if self._pattern is None:
            return value
        return self._value(value)

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
        if self._pattern is None or len(text) < self._shortest:
            return []
        if sum(map(text.count, _MARKS)) > _MAX_ESCAPES:  # reading them all would hold up every other call
            return [Span(0, len(text), "unknown: too many escapes to check")]
        return _merged(sorted(self._found(text, _DEPTH)))

    def opening(self, text: str) -> int:
        """Where the last stretch begins that may be the beginning of a secret; the end of the text if none does."""
        if self._pattern is None:
            return len(text)
        window = self.longest * _WIDEST
        start = max(0, len(text) - window)
        return start + self._opening(text[start:], _DEPTH)

    @property
    def longest(self) -> int:
        """The length of the longest form."""
        return max(map(len, self._labels), default=0)

    def label_at(self, text: str) -> str:
        """The name of a secret that begins like this."""
        for view in (text, *(view.text for view in _views(text))):
            for form, label in self._labels.items():
                if form.startswith(view):
                    return label
        return "unknown"

    def _found(self, text: str, depth: int) -> Iterator[Span]:
        pattern = self._pattern
        if pattern is None:
            return
        found = pattern.search(text)
        while found is not None:
            yield Span(found.start(), found.end(), self._labels[found.group()])
            found = pattern.search(text, found.start() + 1)  # two secrets may overlap
        if depth:
            for view in _views(text):
                for span in self._found(view.text, depth - 1):
                    yield Span(*view.origin(span.start, span.end), span.label)

    def _opening(self, text: str, depth: int) -> int:
        first = len(text)
        for form in self._labels:
            first = min(first, _begins(text, form))
        if depth:
            cut = _CUT_ESCAPE.search(text)
            whole = text if cut is None else text[: cut.start()]
            if cut is not None:
                first = min(first, cut.start())
            for view in _views(whole):
                begins = self._opening(view.text, depth - 1)
                if begins < len(view.text):
                    first = min(first, view.origin(begins, len(view.text))[0])
            if cut is not None:
                for form in self._labels:
                    first = min(first, _begins(whole, form))
        return first


class StreamScrubber:
    """Scrubs text that comes in pieces: what may be the beginning of a secret is held back until it is clear."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be shown so far."""
        text = self._held + text
        spans = self._scrubber.spans(text)
        cut = self._scrubber.opening(text)
        for span in spans:
            if span.start < cut < span.end:
                cut = span.start
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
        if len(text) - opening >= _TELLING:
            spans = _merged([*spans, Span(opening, len(text), self._scrubber.label_at(text[opening:]))])
        self._before = text[opening:]
        own = [Span(max(s.start - known, 0), s.end - known, s.label) for s in spans if s.end > known]
        return _replaced(message, own)


class _View:
    """A text with its escapes read, and where each stretch of it came from."""

    def __init__(self, text: str, escape: re.Pattern[str], read: Callable[[str], str]) -> None:
        pieces: list[str] = []
        self._at: list[int] = []
        self._from: list[int] = []
        self._escaped: list[bool] = []
        self._size = len(text)
        here = there = 0
        for token in escape.finditer(text):
            plain = read(token.group())
            for piece, source, escaped in ((text[there : token.start()], there, False), (plain, token.start(), True)):
                if piece:
                    self._mark(here, source, escaped)
                    pieces.append(piece)
                    here += len(piece)
            there = token.end()
        self._mark(here, there, False)
        pieces.append(text[there:])
        self.text = "".join(pieces)

    def _mark(self, at: int, source: int, escaped: bool) -> None:
        self._at.append(at)
        self._from.append(source)
        self._escaped.append(escaped)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the source that became this one; an escape counts whole."""
        first = bisect_right(self._at, start) - 1
        last = bisect_right(self._at, end - 1) - 1
        begin = self._from[first] + (0 if self._escaped[first] else start - self._at[first])
        if not self._escaped[last]:
            return begin, self._from[last] + end - self._at[last]
        return begin, self._from[last + 1] if last + 1 < len(self._from) else self._size


_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


def _percent(token: str) -> str:
    return unquote_to_bytes(token).decode("utf-8", "replace")


def _backslash(token: str) -> str:
    if len(token) > 2:
        return chr(int(token[2:], 16))
    return _SIMPLE.get(token[1:], token[1:])


_MARKS = "%\\&"
_WIDEST = 12
_ESCAPES = {
    "%": (re.compile(r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+"), _percent),
    "\\": (re.compile(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[^ux])", re.DOTALL), _backslash),
    "&": (re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"), html.unescape),
}
_CUT_ESCAPE = re.compile(r"(?:%[0-9A-Fa-f]?|\\(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?)?|&#?[0-9A-Za-z]{0,8})\Z")


def _views(text: str) -> Iterator[_View]:
    for mark, (escape, read) in _ESCAPES.items():
        if mark in text:
            view = _View(text, escape, read)
            if view.text != text:
                yield view


def _forms(value: str) -> set[str]:
    """Every spelling of a value that is looked for as it stands."""
    forms = {value, value.strip(), quote_plus(value)}
    lines = [line.strip() for line in value.splitlines()[:_MAX_LINES]]
    forms.update(line for line in lines if len(line) >= _MIN_LINE and not line.startswith("-----"))
    for plain in list(forms):
        data = plain.encode("utf-8", "surrogatepass")
        forms.update((plain.lower(), plain.upper(), data.hex(), data.hex().upper()))
        for encoded in _base64(data):
            forms.update((encoded, encoded.translate(_URL_SAFE)))
    return {form for form in forms if len(form) >= MIN_LENGTH}


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """The data in base64: alone, and the part that stays the same wherever it begins inside a longer text."""
    yield base64.b64encode(data).decode().rstrip("=")
    if len(data) >= _MIN_ALIGNED:
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + data).decode()
            yield encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]


def _begins(text: str, form: str) -> int:
    """Where the text ends with a beginning of the form; its length if it does not."""
    at = text.find(form[0], max(0, len(text) - len(form) + 1))
    while at >= 0 and not form.startswith(text[at:]):
        at = text.find(form[0], at + 1)
    return at if at >= 0 else len(text)


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
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], f"[secret {span.label}]")
        at = span.end
    return "".join((*pieces, text[at:])) if spans else text


def _free(name: Any, taken: dict[Any, Any]) -> Any:
    """A key that is not taken: two secrets may leave the same mark."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
