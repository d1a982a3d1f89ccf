"""Arguments of a tool as a person types them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any


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
        if (properties or {}).get(key, {}).get("type") == "string":
            arguments[key] = value
            continue
        try:
            arguments[key] = json.loads(value)
        except ValueError:
            arguments[key] = value
    return arguments


def _object(text: str) -> dict[str, Any]:
    form = json.loads(text)
    if not isinstance(form, dict):
        raise ValueError("an object is needed")
    return form
