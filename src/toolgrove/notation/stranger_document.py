"""Reads a document in JSON or YAML that a stranger wrote, within bounds that hold while it reads.

Promised to whoever reads documents from outside: no bytes end the process or keep a thread, and what comes back is
plain JSON, no larger and no deeper than asked for.

- Nothing here calls itself: the depth of a document is a list, not a stack. PyYAML's own composer and constructor do
  call themselves, and in C, so that 100 KB of `[` end the process; of PyYAML only the events of its scanner are used.
- What an alias or a merge key stands for counts as if it were written out, before it is put anywhere. It is the same
  object in each place, so nobody may change what comes back.
- The text is handed to the scanner in small pieces by Python code. There other threads get their turn, also in the
  middle of a long scalar, and there the time ends: `seconds` of this thread's processor time for the whole document.
- JSON is read by the standard library while it is small, because that reads all of it in one go, which holds
  everybody up; else it is read token by token.

It knows nothing of what a document means.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import yaml

from toolgrove.notation import strict_json
from toolgrove.notation.half_characters import PROBLEM, has_half

IN_ONE_GO = 256 * 1024
"""Characters of JSON that the standard library may read at once: a few milliseconds at most."""
_PIECE = 4 * 1024
_STEPS = 1_000
_MAX_DIRECTIVES = 100
"""Each is compared with all before it, in one go."""
_LONGEST_NUMBER = 500
_COLLECTION = 8
"""A list or an object counts as so many nodes: Python looks at all of them, in one go, when it collects garbage."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is many times faster
_TAG = "tag:yaml.org,2002:"
_OPEN = object()
_MERGE = object()
_NO_KEY = object()


class NotPlain(ValueError):
    """What YAML can say and JSON cannot, or more than is read; the message completes "it cannot be read:"."""


def read(text: str, *, nodes: int, depth: int, seconds: float) -> Any:
    """The value of a text, with text keys; ValueError or yaml.YAMLError where there is none within the bounds."""
    built = _Built(nodes, depth, seconds)
    if text.lstrip(" \t\r\n").startswith("{"):
        try:
            return built.checked(strict_json.decode(text)) if len(text) <= IN_ONE_GO else _read_json(text, built)
        except json.JSONDecodeError:
            built = _Built(nodes, depth, seconds)  # YAML, too, may begin with a brace
    return _read_yaml(text, built)


class _Frame:
    """A collection that is not closed yet."""

    __slots__ = ("anchor", "before", "height", "key", "merged", "value")

    def __init__(self, value: Any, anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before
        self.height = 1
        self.key: Any = _NO_KEY
        self.merged: list[Any] = []


class _Built:
    """A value in the making: collections are opened and closed, and all that is put into them is counted."""

    def __init__(self, nodes: int, depth: int, seconds: float) -> None:
        self._nodes = nodes
        self._depth = depth
        self._until = time.thread_time() + seconds
        self._steps = 0
        self.spent = 0
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self.whole: Any = None

    def spend(self, nodes: int) -> None:
        """Count nodes, and look at the clock now and then."""
        self.spent += nodes
        if self.spent > self._nodes:
            raise NotPlain("it is too large or too deep")
        self._steps += 1
        if self._steps >= _STEPS:
            self.look()

    def look(self) -> None:
        """End the reading if it took too long."""
        self._steps = 0
        if self.is_late:
            raise NotPlain("it takes too long to read")

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.thread_time() > self._until

    def open(self, value: Any, anchor: str | None = None) -> None:
        """Begin a list or an object."""
        before = self.spent
        self.spend(_COLLECTION)
        if len(self._frames) >= self._depth:
            raise NotPlain("it is too large or too deep")
        if anchor is not None:
            self._anchors[anchor] = (_OPEN, 0, 0)
        self._frames.append(_Frame(value, anchor, before))

    def close(self) -> None:
        """End the collection that was begun last, and put it where it belongs."""
        frame = self._frames.pop()
        value = frame.value
        if frame.merged:
            value = {}
            for one in frame.merged:
                value.update(one)
            value.update(frame.value)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (value, self.spent - frame.before, frame.height)
        self._put(value, frame.height)

    def scalar(self, value: Any, anchor: str | None = None) -> None:
        """Put a text, a number, true, false or null."""
        self.spend(1)
        if isinstance(value, str) and "\r\n" in value:
            value = value.replace("\r\n", "\n")
        if anchor is not None:
            self._anchors[anchor] = (value, 1, 0)
        self._put(value, 0)

    def alias(self, anchor: str) -> None:
        """Put what stands under a name, as if it were written here."""
        value, size, height = self._anchors.get(anchor, (None, -1, 0))
        if size < 0:
            raise NotPlain("it has an alias for nothing")
        if value is _OPEN or len(self._frames) + height > self._depth:
            raise NotPlain("it is too large or too deep")
        self.spend(size)
        self._put(value, height)

    def _put(self, value: Any, height: int) -> None:
        if not self._frames:
            self.whole = None if value is _MERGE else value
            return
        frame = self._frames[-1]
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.value, list):
            frame.value.append("<<" if value is _MERGE else value)
        elif frame.key is _NO_KEY:
            frame.key = value if value is _MERGE else _key(value)
        else:
            key, frame.key = frame.key, _NO_KEY
            if key is _MERGE:
                self._merge(frame, value)
            else:
                frame.value[key] = "<<" if value is _MERGE else value

    def _merge(self, frame: _Frame, value: Any) -> None:
        sources = value[::-1] if isinstance(value, list) else [value]  # the first one counts most
        for one in sources:
            if not isinstance(one, dict):
                raise NotPlain("it merges something that is not a mapping")
            self.spend(len(one))
        frame.merged += sources

    def checked(self, value: Any) -> Any:
        """A value that was read in one go, with everything counted."""
        waiting = [(value, 1)]
        while waiting:
            one, depth = waiting.pop()
            items = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            self.spend(_COLLECTION if isinstance(one, dict | list) else 1)
            if items and depth > self._depth:
                raise NotPlain("it is too large or too deep")
            waiting += [(item, depth + 1) for item in items]
        return value


def _key(key: Any) -> str:
    """Status codes are often written as numbers."""
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, str | int):
        return str(key)
    raise NotPlain("a key is not text")


# YAML ---------------------------------------------------------------------------------------------


class _Pieces:
    """A text as a stream of small pieces, which ends early when its time is over."""

    def __init__(self, text: str, built: _Built) -> None:
        self._text = text
        self._built = built
        self._at = 0

    def read(self, size: int) -> str:
        """The next piece."""
        if self._built.is_late:
            return ""  # the scanner does not expect an error here
        piece = self._text[self._at : self._at + min(size, _PIECE)]
        self._at += len(piece)
        return piece


def _read_yaml(text: str, built: _Built) -> Any:
    if text.count("%TAG") > _MAX_DIRECTIVES:
        raise NotPlain("it has too many directives")
    documents = 0
    for event in _events(text, built):
        if isinstance(event, yaml.ScalarEvent):
            built.scalar(_value(event), event.anchor)
        elif isinstance(event, yaml.CollectionStartEvent):
            is_list = isinstance(event, yaml.SequenceStartEvent)
            if event.tag not in (None, "!", f"{_TAG}{'seq' if is_list else 'map'}"):
                raise NotPlain(f"it holds a value of the kind {event.tag[:80]!r}")
            built.open([] if is_list else {}, event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            built.close()
        elif isinstance(event, yaml.AliasEvent):
            built.alias(str(event.anchor))
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise NotPlain("it is more than one document")
    return built.whole


def _events(text: str, built: _Built) -> Iterator[Any]:
    try:
        yield from yaml.parse(_Pieces(text, built), Loader=_Loader)
    except yaml.YAMLError:
        built.look()  # the text may have ended early
        raise
    built.look()


_SCALARS = yaml.constructor.SafeConstructor()
_KINDS: dict[str, Any] = {
    "null": lambda node: None,
    "bool": _SCALARS.construct_yaml_bool,
    "int": _SCALARS.construct_yaml_int,
    "float": _SCALARS.construct_yaml_float,
    "str": lambda node: node.value,
}
_IMPLICIT = {  # a date is text, as in JSON
    first: [(tag.removeprefix(_TAG), pattern) for tag, pattern in resolvers if tag.removeprefix(_TAG) in _KINDS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _value(event: Any) -> Any:
    """What a scalar stands for: where it has no tag, as it looks."""
    text: str = event.value
    kind = "str"
    if event.tag is not None and event.tag != "!":
        kind = event.tag.removeprefix(_TAG)
        if kind not in _KINDS:
            raise NotPlain(f"it holds a value of the kind {event.tag[:80]!r}")
    elif event.implicit[0]:
        if text == "<<":
            return _MERGE
        kind = _looks_like(text)
    if kind != "str" and len(text) > _LONGEST_NUMBER:
        raise NotPlain("it holds a number beyond all bounds")
    try:
        return _KINDS[kind](yaml.ScalarNode(f"{_TAG}{kind}", text))
    except (KeyError, IndexError):  # such as a word that is not true or false, and is tagged as if it were
        raise NotPlain(f"it holds something that is not of the kind {kind!r}") from None


def _looks_like(text: str) -> str:
    if len(text) > _LONGEST_NUMBER:
        return "str"
    kind: str
    for kind, pattern in (*_IMPLICIT.get(text[:1], ()), *_IMPLICIT.get(None, ())):
        if pattern.match(text):
            return kind
    return "str"


# JSON, token by token -----------------------------------------------------------------------------

_BLANK = re.compile(r"[ \t\r\n]{0,4096}+")
_NUMBER = re.compile(r"-?+(?:0|[1-9][0-9]{0,4999}+)(?P<part>(?:\.[0-9]{1,5000}+)?+(?:[eE][-+]?+[0-9]{1,9}+)?+)")
_WORD = re.compile("true|false|null")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_SCAN: Callable[[str, int, bool], tuple[str, int]] = vars(json.decoder)["scanstring"]  # as `JSONDecoder` does
_Wanted = Literal["value", "first value", "key", "first key", "comma"]


def _read_json(text: str, built: _Built) -> Any:
    wanted: _Wanted = "value"
    closers = list[str]()
    at = 0
    while True:
        at = _after_blanks(text, at)
        character = text[at : at + 1]
        if wanted == "comma" and not closers:
            if character:
                raise json.JSONDecodeError("Extra data", text, at)
            return built.whole
        if character and closers and character == closers[-1] and wanted in ("first value", "first key", "comma"):
            closers.pop()
            built.close()
            at, wanted = at + 1, "comma"
        elif wanted == "comma":
            if character != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at, wanted = at + 1, "key" if closers[-1] == "}" else "value"
        elif wanted in ("key", "first key"):
            if character != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
            at = _after_blanks(text, _text(text, at, built))
            if text[at : at + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
            at, wanted = at + 1, "value"
        elif character == "{":
            built.open({})
            closers.append("}")
            at, wanted = at + 1, "first key"
        elif character == "[":
            built.open([])
            closers.append("]")
            at, wanted = at + 1, "first value"
        else:
            at, wanted = _text(text, at, built) if character == '"' else _word(text, at, built), "comma"


def _after_blanks(text: str, at: int) -> int:
    while True:
        found = _BLANK.match(text, at)
        if found is None or found.end() == at:
            return at
        at = found.end()


def _text(text: str, at: int, built: _Built) -> int:
    value, at = _SCAN(text, at + 1, True)
    if not value.isascii() and has_half(value):
        raise strict_json.HalfCharacter(f"it {PROBLEM}")
    built.scalar(value)
    return at


def _word(text: str, at: int, built: _Built) -> int:
    found = _NUMBER.match(text, at)
    if found is not None:
        value = float(found[0]) if found["part"] else int(found[0])
        if isinstance(value, float) and not math.isfinite(value):
            raise strict_json.NotANumber("it holds a number beyond all bounds")
    else:
        found = _WORD.match(text, at)
        if found is None:
            raise json.JSONDecodeError("Expecting value", text, at)
        value = _WORDS[found[0]]
    built.scalar(value)
    return found.end()
