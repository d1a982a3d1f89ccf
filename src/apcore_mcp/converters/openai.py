"""Modules as OpenAI tool definitions: plain dicts, no `openai` package."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from apcore import ModuleDescriptor

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.id_normalizer import ModuleIDNormalizer
from apcore_mcp.adapters.schema import SchemaConverter, map_subschemas
from apcore_mcp.modules import Json, Source, registry_of
from apcore_mcp.options import Tags, check_filters, check_types

logger = logging.getLogger(__name__)

NULL = {"type": "null"}
OPEN_OBJECT = "Schema for module '%s' uses additionalProperties: true, which is incompatible with strict mode"


class OpenAIConverter:
    """Converts modules; one that cannot be converted is skipped with a warning."""

    def convert_registry(
        self,
        registry_or_executor: Source,
        *,
        embed_annotations: bool = False,
        strict: bool = False,
        tags: Tags = None,
        prefix: str | None = None,
    ) -> list[Json]:
        """Every module that passes the filters, as OpenAI tool definitions."""
        registry = registry_of(registry_or_executor)
        hints = {"embed_annotations": bool, "strict": bool, "tags": Tags, "prefix": str | None}
        check_types(hints, locals())
        check_filters(tags, prefix)
        tools = []
        for module_id in registry.list(tags=tags, prefix=prefix):
            try:
                descriptor = registry.get_definition(module_id)
                if descriptor is not None:
                    tools.append(self.convert_descriptor(descriptor, embed_annotations, strict))
            except Exception as error:
                logger.warning("Skipping module %s: %s: %s", module_id, type(error).__name__, error)
        return tools

    def convert_descriptor(
        self, descriptor: ModuleDescriptor, embed_annotations: bool = False, strict: bool = False
    ) -> Json:
        """One module as an OpenAI tool definition."""
        name = ModuleIDNormalizer().normalize(descriptor.module_id)
        description = descriptor.description
        if embed_annotations:
            description += AnnotationMapper().to_description_suffix(descriptor.annotations)
        parameters = SchemaConverter().convert_input_schema(descriptor)
        function: Json = {"name": name, "description": description, "parameters": parameters}
        if strict:
            warn = partial(logger.warning, OPEN_OBJECT, descriptor.module_id)
            function |= {"parameters": strict_schema(parameters, warn), "strict": True}
        return {"type": "function", "function": function}


def to_openai_tools(
    registry_or_executor: Source,
    *,
    embed_annotations: bool = False,
    strict: bool = False,
    tags: Tags = None,
    prefix: str | None = None,
) -> list[Json]:
    """The modules as the `tools` argument of an OpenAI-style API takes them."""
    return OpenAIConverter().convert_registry(
        registry_or_executor, embed_annotations=embed_annotations, strict=strict, tags=tags, prefix=prefix
    )


def strict_schema(schema: Any, on_open_object: Callable[[], None]) -> Any:
    """The schema under OpenAI's strict rules: closed objects, all required, optional means nullable."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "default" and not key.startswith("x-")}
    strict = map_subschemas(kept, lambda child: strict_schema(child, on_open_object))
    if "object" not in _kinds(schema) and "properties" not in schema:
        return strict
    if schema.get("additionalProperties", False) is not False:
        on_open_object()
    properties = strict.get("properties", {})
    optional = properties.keys() - set(schema.get("required", ()))
    properties |= {name: _nullable(properties[name]) for name in optional}
    return strict | {"properties": properties, "additionalProperties": False, "required": list(properties)}


def _nullable(schema: Any) -> Any:
    if not isinstance(schema, dict) or "const" in schema:
        return {"anyOf": [schema, NULL]}
    if "type" in schema:
        return _nullable_type(schema)
    if "anyOf" not in schema:
        return {"anyOf": [schema, NULL]}
    if NULL in schema["anyOf"]:
        return schema
    return {**schema, "anyOf": [*schema["anyOf"], NULL]}


def _nullable_type(schema: Json) -> Json:
    if "null" in _kinds(schema):
        return schema
    nullable = {**schema, "type": [*_kinds(schema), "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _kinds(schema: Json) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]
