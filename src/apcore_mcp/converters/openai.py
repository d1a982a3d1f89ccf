"""Modules as OpenAI tool definitions: plain dicts, no `openai` package."""

import logging
from collections.abc import Callable
from typing import Any

from apcore import Executor, ModuleDescriptor, Registry

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.id_normalizer import ModuleIDNormalizer
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.modules import check_filters, registry_of

logger = logging.getLogger(__name__)

_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains"})


class OpenAIConverter:
    """Converts descriptors; a module that cannot be converted is skipped with a warning."""

    def __init__(self) -> None:
        self._schemas = SchemaConverter()
        self._annotations = AnnotationMapper()
        self._ids = ModuleIDNormalizer()

    def convert_registry(
        self,
        registry_or_executor: Registry | Executor,
        *,
        embed_annotations: bool = False,
        strict: bool = False,
        tags: list[str] | None = None,
        prefix: str | None = None,
    ) -> list[dict[str, Any]]:
        """Every module that passes the filters, as OpenAI tool definitions."""
        registry = registry_of(registry_or_executor)
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
    ) -> dict[str, Any]:
        parameters = self._schemas.convert_input_schema(descriptor)
        suffix = self._annotations.to_description_suffix(descriptor.annotations) if embed_annotations else ""
        function: dict[str, Any] = {
            "name": self._ids.normalize(descriptor.module_id),
            "description": descriptor.description + suffix,
            "parameters": strict_schema(parameters, _warn_open(descriptor.module_id)) if strict else parameters,
        }
        return {"type": "function", "function": function | ({"strict": True} if strict else {})}


def _warn_open(module_id: str) -> Callable[[], None]:
    return lambda: logger.warning(
        "Schema for module '%s' uses additionalProperties: true, which is incompatible with strict mode", module_id
    )


def strict_schema(schema: Any, on_open_object: Callable[[], None]) -> Any:
    """The schema under OpenAI's strict rules: closed objects, all required, optional means nullable."""
    if not isinstance(schema, dict):
        return schema
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "default" or key.startswith("x-"):
            continue
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            strict[key] = {name: strict_schema(child, on_open_object) for name, child in value.items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            strict[key] = [strict_schema(child, on_open_object) for child in value]
        else:
            strict[key] = strict_schema(value, on_open_object) if key in _SCHEMAS else value
    kinds = schema.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds) or "properties" in schema:
        if schema.get("additionalProperties", False) is not False:
            on_open_object()
        properties = strict.setdefault("properties", {})
        for name in properties.keys() - set(schema.get("required", ())):
            properties[name] = _nullable(properties[name])
        strict |= {"additionalProperties": False, "required": list(properties)}
    return strict


def _nullable(schema: Any) -> Any:
    if not isinstance(schema, dict) or "const" in schema or not (schema.keys() & {"type", "anyOf"}):
        return {"anyOf": [schema, {"type": "null"}]}
    if "type" not in schema:
        options = schema["anyOf"]
        return schema if {"type": "null"} in options else {**schema, "anyOf": [*options, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "null" in kinds:
        return schema
    nullable = {**schema, "type": [*kinds, "null"]}
    return nullable | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


to_openai_tools = OpenAIConverter().convert_registry
