"""A tool's input schema in few words: all that is needed to call it, nothing that is only nice to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = frozenset(
    (
        *("type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
        *(
            "definitions",
            "prefixItems",
            "format",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "pattern",
            "description",
        ),
    )
)
_NAMED = frozenset(("properties", "$defs", "definitions"))
_TEXT = 160
_DEPTH = 12


def compact_schema(schema: Any, depth: int = 0) -> Any:
    """The schema without titles, defaults, examples and long texts."""
    if isinstance(schema, list | tuple):
        return [compact_schema(one, depth + 1) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    if depth > _DEPTH:
        return {key: schema[key] for key in ("type", "$ref") if key in schema}
    return {key: _value(key, value, depth) for key, value in schema.items() if key in _KEPT and value not in ([], {})}


def _value(key: str, value: Any, depth: int) -> Any:
    if key in _NAMED and isinstance(value, Mapping):
        return {name: compact_schema(one, depth + 1) for name, one in value.items()}
    if key == "description" and isinstance(value, str):
        return shortened_text(value, _TEXT)
    return value if key in ("enum", "const", "required", "type") else compact_schema(value, depth + 1)


def shortened_text(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
