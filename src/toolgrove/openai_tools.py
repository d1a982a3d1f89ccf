"""An agent's tools as OpenAI definitions, by the bridge's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from apcore import ModuleAnnotations

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.converters.openai import strict_schema
from toolgrove.types import ToolSpec


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
    if strict:  # open objects such as a payload cannot be said strictly; the gate checks them anyway
        function |= {"parameters": strict_schema(parameters, lambda: None), "strict": True}
    return function
