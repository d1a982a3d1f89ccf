"""Takes known secret values out of text, also where they are encoded, split over chunks, or both.

A value is looked for as it is, in base64 at every alignment, in hex and in other letter case; then again in what the
text becomes when its escapes (percent, backslash, entity) are read, and when its lines are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolgrove.pool.secret_encodings import CUT_ESCAPE, HALVES, MIN_LENGTH, READINGS, WIDEST, UnescapedText, encodings

_MAX_ESCAPES = 300_000
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
        self._encodings: tuple[str, ...] = ()
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
        for encoding in encodings(value):
            labels.setdefault(encoding, label)
        starts: dict[str, list[str]] = {}
        for encoding in labels:
            for size in range(1, _TELLING + 1):
                starts.setdefault(encoding[:size], []).append(encoding)
        self._labels, self._starts, self._encodings = labels, starts, tuple(sorted(labels, key=len))
        self._shortest, self._longest = len(self._encodings[0]), len(self._encodings[-1])
        self._digits = self._digits or re.fullmatch(r"-?[\d.]+", value) is not None
        return True

    def text(self, text: str) -> str:
        """The text with `[secret NAME]` in place of every value."""
        return _replaced(text, self.spans(text))

    @property
    def known(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._encodings)

    def value(self, value: Any) -> Any:
        """The same for a JSON value: its strings, its keys, and numbers that are a secret's digits."""
        return self._value(value) if self._encodings else value

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
        if not self._encodings or len(text) < self._shortest:
            return []
        if "\\" not in text and "%" not in text and "&" not in text and "\n" not in text and not self._hit(text):
            return []
        if sum(map(text.count, "\\%&\n")) > _MAX_ESCAPES:  # reading them all would hold up every other call
            return [Span(0, len(text), "unknown: too many escapes to check")]
        return _merged(sorted(self._found(text, _DEPTH)))

    def opening(self, text: str) -> Span:
        """The stretch at the end that may be the beginning of a secret; an empty one if there is none."""
        if not self._encodings:
            return Span(len(text), len(text), "")
        start = max(0, len(text) - self._longest * WIDEST)
        found = self._opening(text[start:], _DEPTH)
        return Span(start + found.start, len(text), found.label)

    @property
    def longest(self) -> int:
        """The most characters that a secret can fill."""
        return self._longest * WIDEST

    def _hit(self, text: str) -> bool:
        # A loop, since one regular expression of all of them takes ten times as long on a long text.
        room = len(text)
        for encoding in self._encodings:
            if len(encoding) > room:
                return False
            if encoding in text:
                return True
        return False

    def _found(self, text: str, depth: int) -> Iterator[Span]:
        if self._hit(text):
            for encoding, label in self._labels.items():
                at = text.find(encoding)
                while at >= 0:
                    yield Span(at, at + len(encoding), label)
                    at = text.find(encoding, at + 1)
        if depth:
            for marks, change, read in READINGS:
                if any(mark in text for mark in marks):
                    plain = change.sub(read, text)
                    # Where a character came from is asked only if something is there.
                    spans = list(self._found(plain, depth - 1)) if plain != text else []
                    if spans:
                        view = UnescapedText(text, change, read)
                        yield from (Span(*view.origin(span.start, span.end), span.label) for span in spans)

    def _opening(self, text: str, depth: int) -> Span:
        cut = CUT_ESCAPE.search(text) if depth else None
        found = [self._begins(text), self._begins(text.rstrip(HALVES))]
        whole = text
        if cut is not None:
            whole = text[: cut.start()]
            found += [Span(cut.start(), len(text), "")] if cut.group() else []
            found.append(self._begins(whole))
        for marks, change, read in READINGS if depth else ():
            if any(mark in whole for mark in marks):
                view = UnescapedText(whole, change, read)
                inner = self._opening(view.text, depth - 1)
                if inner.start < inner.end:
                    found.append(Span(view.origin(inner.start, inner.end)[0], len(text), inner.label))
        return min(found)

    def _begins(self, text: str) -> Span:
        """Where the text ends with a beginning of an encoding."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            for encoding in self._starts.get(text[at : at + _TELLING], ()):
                if encoding.startswith(text[at:]):
                    return Span(at, len(text), self._labels[encoding])
        return Span(len(text), len(text), "")


class StreamScrubber:
    """Scrubs text that comes in pieces: what may be the beginning of a secret is held back until it is clear."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece, and give what is certainly free of secrets by now."""
        text = self._held + text
        spans = self._scrubber.spans(text)
        cut = self._scrubber.opening(text).start
        for span in spans:
            if span.start < cut < span.end:  # the end of one may be the beginning of another, but not for ever
                cut = span.start if len(text) - span.start <= 2 * self._scrubber.longest else span.end
        self._held = text[cut:]
        return _replaced(text[:cut], [span for span in spans if span.end <= cut])

    def end(self) -> str:
        """Give what was held back: no more comes."""
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
        if known:  # what came before may change how the beginning of this message reads
            alone = self._scrubber.spans(message)
            spans = _merged(sorted((*spans, *(Span(one.start + known, one.end + known, one.label) for one in alone))))
        opening = self._scrubber.opening(text)
        if opening.label and opening.end - opening.start >= _TELLING:
            spans = _merged(sorted((*spans, opening)))
        self._before = text[opening.start :]
        own = [Span(max(s.start - known, 0), s.end - known, s.label) for s in spans if s.end > known]
        return _replaced(message, own)


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
