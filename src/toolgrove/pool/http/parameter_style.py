"""Argument values as text: in a path, a query, a header, a form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from toolgrove.errors import InvalidArgument

Style = Literal["repeat", "spread", "comma", "space", "pipe", "deep", "json"]
"""How a list or an object is written; `spread` makes each property of an object a parameter of its own."""
_JOINTS: dict[Style, str] = {"comma": ",", "space": " ", "pipe": "|"}
Pairs = Iterator[tuple[str, str]]


def text_of(value: Any, argument: str) -> str:
    """A scalar as text; a list as its items with commas between."""
    if isinstance(value, list):
        return ",".join(_scalar(item, argument) for item in value)
    return _scalar(value, argument)


def pairs_of(name: str, value: Any, argument: str, style: Style = "repeat") -> Pairs:
    """A value as the names and texts of a query or a form; null is left out."""
    if value is None:
        return
    if style == "json":
        yield name, json_text(value, argument)
    elif isinstance(value, list):
        if style in _JOINTS:
            yield name, _JOINTS[style].join(_scalar(item, argument) for item in value)
        else:
            yield from ((name, _flat(item, argument)) for item in value)
    elif isinstance(value, dict):
        yield from _of_object(name, value, argument, style)
    else:
        yield name, _scalar(value, argument)


def json_text(value: Any, argument: str) -> str:
    """A value as JSON in plain ASCII."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise InvalidArgument(
            f"Argument {argument!r} holds a number that JSON cannot carry. Send a smaller one.", reason="not_json"
        ) from None


def _of_object(name: str, value: dict[str, Any], argument: str, style: Style) -> Pairs:
    if style == "deep":
        for key, item in value.items():
            yield from pairs_of(f"{name}[{key}]", item, argument, "deep")
    elif style == "spread":
        yield from ((key, _flat(item, argument)) for key, item in value.items() if item is not None)
    elif style == "repeat":
        yield name, json_text(value, argument)
    else:
        yield name, ",".join(f"{key},{_scalar(item, argument)}" for key, item in value.items())


def _flat(value: Any, argument: str) -> str:
    return json_text(value, argument) if isinstance(value, dict | list) else _scalar(value, argument)


def _scalar(value: Any, argument: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        raise InvalidArgument(
            f"Argument {argument!r} has to be a string, a number or a boolean here.", reason="schema", path=argument
        )
    return json_text(value, argument)
