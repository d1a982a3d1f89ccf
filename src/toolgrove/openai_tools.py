"""An agent's tools as OpenAI definitions, by the bridge's rules.

Strict mode knows closed objects whose every property is named, and nothing else. A tool that takes an open object, such
as the payload of a node, or any value, cannot be said in it: closed, it would take no payload at all. Such a tool keeps
its schema and says `strict: false`, so that a list may hold both kinds, and the gate checks the arguments of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from apcore import ModuleAnnotations

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.converters.openai import strict_schema
from toolgrove.types import ToolSpec

_DESCRIBING = ("$schema", "title", "description", "default", "examples", "pattern", "format")
_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minLength", "maxLength"),
)
_SHAPE = ("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const")
_SAYABLE = frozenset((*_DESCRIBING, *_BOUNDS, *_SHAPE))
"""The keywords that strict mode knows, and those that only describe."""


def openai_tools(specs: Sequence[ToolSpec], *, strict: bool, embed_annotations: bool) -> list[dict[str, Any]]:
    """The tools as the `tools` argument of an OpenAI-style API takes them."""
    return [{"type": "function", "function": _function(spec, strict, embed_annotations)} for spec in specs]


def _function(spec: ToolSpec, strict: bool, embed_annotations: bool) -> dict[str, Any]:
    description = spec.description
    if embed_annotations:
        said = {name: value for name, value in asdict(spec.annotations).items() if value is not None}
        description += AnnotationMapper().to_description_suffix(ModuleAnnotations(**said))
    parameters = dict(spec.input_schema)
    function: dict[str, Any] = {"name": spec.name, "description": description, "parameters": parameters}
    if strict and can_be_strict(parameters):
        function |= {"parameters": strict_schema(parameters, lambda: None), "strict": True}
    elif strict:
        function["strict"] = False
    return function


def can_be_strict(schema: Any) -> bool:
    """Whether strict mode can say all that a schema takes."""
    if not isinstance(schema, dict) or not _SAYABLE.issuperset(key for key in schema if not key.startswith("x-")):
        return False
    if "anyOf" in schema:
        return all(map(can_be_strict, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return True
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "object" in kinds:
        is_closed = schema.get("additionalProperties", False) is False
        if not is_closed or "properties" not in schema or not all(map(can_be_strict, schema["properties"].values())):
            return False
    return bool(kinds) and ("array" not in kinds or can_be_strict(schema.get("items")))
