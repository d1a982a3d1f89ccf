"""Arguments of a tool as a person types them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from toolgrove.notation import strict_json


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as a JSON object, or as key=value words whose values are JSON or plain text."""
    return _object(text) if text.startswith("{") else read_words(shlex.split(text))


def read_words(words: Iterable[str], properties: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same from words that a shell has split already; what the schema calls a string stays as it was typed."""
    words = list(words)
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0])
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r} is not key=value")
        schema = (properties or {}).get(key)
        is_text = isinstance(schema, Mapping) and schema.get("type") == "string"
        arguments[key] = value if is_text else read_value(value)
    return arguments


def read_value(text: str) -> Any:
    """The value of a text that is JSON, else the text itself."""
    try:
        return strict_json.decode(text)
    except ValueError:
        return text


def _object(text: str) -> dict[str, Any]:
    try:
        arguments = strict_json.decode(text, unique=True)
    except ValueError as problem:
        raise ValueError(f"the arguments are not one JSON object: {problem}") from None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not one JSON object")
    return arguments
