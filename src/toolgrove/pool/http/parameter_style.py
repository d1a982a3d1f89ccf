"""Argument values as text: in a path, a query, a header, a form; as OpenAPI names the styles of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

from toolgrove.errors import InvalidArgument

Style = Literal["repeat", "spread", "comma", "space", "pipe", "deep", "json"]
"""How a list or an object is written; `spread` makes each property of an object a parameter of its own."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
PathStyle = Literal["simple", "label", "matrix"]
_JOINTS: dict[Style, str] = {"comma": ",", "space": " ", "pipe": "|"}
Pairs = Iterator[tuple[str, str]]


class Encoded(str):
    """A part of a path that is percent-encoded already, with the signs of its style between its values."""


def text_of(value: Any, argument: str) -> str:
    """A scalar as text; a list as its items with commas between."""
    if isinstance(value, list):
        return ",".join(scalar_text(item, argument) for item in value)
    return scalar_text(value, argument)


def path_text(name: str, value: Any, argument: str, style: PathStyle, *, explode: bool) -> Encoded:
    """A value as a part of a path: `blue`, `.blue` or `;color=blue`; lists and objects by the rules of the style."""

    def text(item: Any) -> str:
        return path_part(scalar_text(item, argument), argument)

    lead, joint = {"simple": ("", ","), "label": (".", "." if explode else ","), "matrix": (";", ";")}[style]
    own = f"{quote(name, safe='')}="
    if isinstance(value, dict):
        pairs = [(text(key), text(item)) for key, item in value.items()]
        if explode:
            return Encoded(lead + joint.join(f"{key}={item}" for key, item in pairs))
        flat = ",".join(f"{key},{item}" for key, item in pairs)
        return Encoded(lead + (own if style == "matrix" else "") + flat)
    if isinstance(value, list):
        if style == "matrix":
            items = [text(item) for item in value]
            return Encoded(";" + (";".join(own + item for item in items) if explode else own + ",".join(items)))
        return Encoded(lead + joint.join(text(item) for item in value))
    return Encoded(lead + (own if style == "matrix" else "") + text(value))


def path_part(text: str, argument: str) -> str:
    """One value, encoded so that it stays within its part of a path."""
    if _CONTROL.search(text):
        raise InvalidArgument(
            f"Argument {argument!r} holds a control character, which a URL cannot carry.",
            reason="path_argument",
            path=argument,
        )
    return quote(text, safe="")


def header_text(value: Any, argument: str, *, explode: bool) -> str:
    """A value as a header: lists with commas, objects as `R,100,G,200` or `R=100,G=200`."""
    if isinstance(value, dict):
        sign = "=" if explode else ","
        return ",".join(f"{key}{sign}{scalar_text(item, argument)}" for key, item in value.items())
    return text_of(value, argument)


def pairs_of(name: str, value: Any, argument: str, style: Style = "repeat") -> Pairs:
    """A value as the names and texts of a query or a form; null is left out."""
    if value is None:
        return
    if style == "json":
        yield name, json_text(value, argument)
    elif isinstance(value, list):
        if style in _JOINTS:
            yield name, _JOINTS[style].join(scalar_text(item, argument) for item in value)
        else:
            yield from ((name, _flat(item, argument)) for item in value)
    elif isinstance(value, dict):
        yield from _of_object(name, value, argument, style)
    else:
        yield name, scalar_text(value, argument)


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
        joint = _JOINTS[style]
        yield name, joint.join(f"{key}{joint}{scalar_text(item, argument)}" for key, item in value.items())


def _flat(value: Any, argument: str) -> str:
    return json_text(value, argument) if isinstance(value, dict | list) else scalar_text(value, argument)


def scalar_text(value: Any, argument: str) -> str:
    """A string, a number or a boolean as text."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        raise InvalidArgument(
            f"Argument {argument!r} has to be a string, a number or a boolean here.", reason="schema", path=argument
        )
    return json_text(value, argument)
