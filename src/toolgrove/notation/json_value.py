"""JSON values: copying, strict equality, order, their texts, and what counts as one at all."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from toolgrove.errors import NotJson
from toolgrove.notation.half_characters import PROBLEM, has_half, refuse_half

MAX_NESTING = 32
_PIECE = 64 * 1024
_BATCH = 256
_CONTAINERS = frozenset((dict, list))
_SCALARS = frozenset((str, int, bool, type(None)))
_NUMBERS = frozenset((int, float, bool, type(None)))
_LISTS = (list, tuple)
_SCALAR = 16
_PATH = 200


def copied(value: Any) -> Any:
    """The value without a container shared with the original."""
    kind = type(value)
    if kind is dict:
        return {key: copied(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if kind is list:
        return [copied(item) if type(item) in _CONTAINERS else item for item in value]
    return value


def detached(value: Any, path: str = "", room: int = MAX_NESTING) -> Any:
    """A copy that is certainly plain JSON, in whole characters; keys are interned: a tree repeats them endlessly."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            refuse_half(value, path)
        return value
    if kind in _SCALARS:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise NotJson(path=path, problem="is not a finite number")
    if room == 0:
        raise NotJson(path=path, problem="is nested too deeply")
    if isinstance(value, dict):
        whole: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise NotJson(path=path, problem=f"has the key {key!r}, which is not a string")
            if not key.isascii() and has_half(key):
                raise NotJson(path=path, problem=f"has the key {key!r}, which {PROBLEM}")
            kind = type(item)
            if kind is str:
                if not item.isascii() and has_half(item):
                    refuse_half(item, f"{path}.{key}" if path else key)
            elif kind not in _SCALARS:
                item = detached(item, f"{path}.{key}" if path else key, room - 1)
            whole[sys.intern(key)] = item
        return whole
    if isinstance(value, _LISTS):
        return [detached(item, f"{path}[{index}]", room - 1) for index, item in enumerate(value)]
    if isinstance(value, str | int | float):
        return detached(_plain(value), path, room)
    raise NotJson(path=path, problem="holds a value that JSON does not know")


def _plain(value: Any) -> Any:
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(value)  # pragma: no cover


def same(left: Any, right: Any) -> bool:
    """Equality as JSON means it: 1 and 1.0 are equal, 1 and true are not."""
    if left is right:
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(same(one, other) for one, other in zip(left, right, strict=True))
        )
    return bool(left == right)


def identical(left: Any, right: Any) -> bool:
    """Equality to the letter: also the order of keys, and 1 is not 1.0."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(identical(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return bool(left == right)


def order_key(value: Any) -> tuple[int, Any]:
    """A total order over JSON values: numbers, strings, booleans, then the rest by its text."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, canonical(value))


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a JSON value, keys included, with the path that leads to it; a long one is cut short.

    A long key above many texts would otherwise be copied for each of them, which takes the square of its length.
    """
    if len(path) > _PATH:
        path = f"{path[:_PATH]}…"
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


def refuse_halves(value: Any) -> None:
    """Refuse a request that holds half a character, and say where."""
    for path, text in texts(value):
        refuse_half(text, path)


def has_many(value: Any, many: int) -> bool:
    """Whether there are so many values in one, whatever they are; counting ends once there are."""
    if type(value) is dict and len(value) < many - 1 and _SCALARS.issuperset(map(type, value.values())):
        return False  # as most are
    count, waiting = 1, [value]
    while waiting and count < many:
        one = waiting.pop()
        items = one.values() if isinstance(one, dict) else one if isinstance(one, _LISTS) else ()
        count += len(items)
        if count < many:
            waiting += [item for item in items if type(item) not in _SCALARS]
    return count >= many


def text_size(value: Any, *, enough: int) -> int:
    """About how many characters the texts of a JSON value have; counting ends once there are enough."""
    size = 0
    waiting = [value]
    while waiting and size < enough:
        one = waiting.pop()
        size += _SCALAR  # many small values take time as well
        if type(one) in _NUMBERS:
            continue
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict):
            size += sum(map(len, one))
            waiting += one.values()
        elif isinstance(one, _LISTS):
            waiting += one
    return size


def compact(value: Any, *, ascii: bool = False, default: Callable[[Any], Any] | None = None) -> str:
    """The shortest text of a value, at a quarter of the standard encoder's cost."""
    try:
        return to_json(value, ensure_ascii=ascii, fallback=default).decode()
    except PydanticSerializationError:  # a lone surrogate, or nested too deeply for it
        return json.dumps(value, ensure_ascii=ascii, separators=(",", ":"), default=default)


def compact_ascii(value: Any) -> str:
    """The same in ASCII, for what every call writes: options cost a third of it."""
    try:
        return to_json(value, ensure_ascii=True).decode()
    except PydanticSerializationError:
        return json.dumps(value, separators=(",", ":"))


def in_pieces(value: Any, encode: Callable[[Any], str]) -> str:
    """The text of a large value, made of many small ones, so that other threads can go on in between."""
    parts: list[str] = []

    def put(value: Any) -> None:
        if text_size(value, enough=_PIECE) < _PIECE or not isinstance(value, str | dict | list | tuple):
            parts.append(encode(value))
        elif isinstance(value, str):
            parts.append('"')
            parts.extend(encode(value[at : at + _PIECE])[1:-1] for at in range(0, len(value), _PIECE))
            parts.append('"')
        elif isinstance(value, dict):
            keys = list(value)
            put_all("{}", [{key: value[key] for key in keys[at : at + _BATCH]} for at in range(0, len(keys), _BATCH)])
        else:
            put_all("[]", [value[at : at + _BATCH] for at in range(0, len(value), _BATCH)])

    def put_all(brackets: str, batches: Sequence[Any]) -> None:
        for first, batch in enumerate(batches):
            parts.append("," if first else brackets[0])
            if text_size(batch, enough=_PIECE) < _PIECE:
                parts.append(encode(batch)[1:-1])
                continue
            for at, item in enumerate(batch):
                parts.append("," if at else "")
                if isinstance(batch, dict):
                    parts.append(f"{encode(item)}:")
                put(batch[item] if isinstance(batch, dict) else item)
        parts.append(brackets[1])

    put(value)
    return "".join(parts)


canonical: Callable[[Any], str] = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""The one text of a value, whatever the order of its keys; what is hashed and compared."""
