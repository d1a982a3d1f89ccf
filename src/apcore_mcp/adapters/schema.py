"""JSON Schemas of apcore modules, made self-contained for MCP and OpenAI."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote

MAX_REF_DEPTH = 32
MAX_NODES = 100_000
_DEFINITIONS = ("$defs", "definitions")
_LITERALS = frozenset({"default", "const", "enum", "examples"})  # data: a "$ref" in here is not a reference
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})  # names to schemas


class Schemas(Protocol):
    """The part of a ModuleDescriptor that is converted."""

    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


class SchemaConverter:
    """Inlines every local `$ref` and guarantees an object at the root."""

    def convert_input_schema(self, descriptor: Schemas) -> dict[str, Any]:
        return self._ensure_object_type(self._inline_refs(descriptor.input_schema))

    def convert_output_schema(self, descriptor: Schemas) -> dict[str, Any]:
        return self._inline_refs(descriptor.output_schema)

    def _inline_refs(self, schema: dict[str, Any]) -> dict[str, Any]:
        body = {key: value for key, value in (schema or {}).items() if key not in _DEFINITIONS}
        inlined: dict[str, Any] = _Inliner(schema).copy(body, ())
        return inlined

    def _ensure_object_type(self, schema: dict[str, Any]) -> dict[str, Any]:
        if not schema:
            return {"type": "object", "properties": {}}
        return schema if schema.get("type") == "object" else {**schema, "type": "object"}


class _Inliner:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._budget = MAX_NODES

    def copy(self, node: Any, path: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self.copy(item, path) for item in node]
        if not isinstance(node, dict):
            return node
        self._budget -= 1
        if self._budget < 0:
            raise ValueError(f"Schema has more than {MAX_NODES} nodes once its references are inlined")
        reference = node.get("$ref")
        if isinstance(reference, str):
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            return self._resolve(reference, path) | self.copy(siblings, path)
        return {key: self._value(key, value, path) for key, value in node.items()}

    def _value(self, key: str, value: Any, path: tuple[str, ...]) -> Any:
        if key in _LITERALS:
            return value
        if key in _MAPS and isinstance(value, dict):
            return {name: self.copy(schema, path) for name, schema in value.items()}
        return self.copy(value, path)

    def _resolve(self, reference: str, path: tuple[str, ...]) -> dict[str, Any]:
        name = reference.rpartition("/")[2]
        if reference in path or reference == "#":
            cycle = [step.rpartition("/")[2] for step in (*path[path.index(reference) :], reference)] if path else ["#"]
            raise ValueError(f"Circular reference: {' -> '.join(cycle)}")
        if len(path) >= MAX_REF_DEPTH:
            raise ValueError(f"Maximum recursion depth of {MAX_REF_DEPTH} exceeded at reference {name}")
        if not reference.startswith("#/"):
            raise ValueError(f"Only references within the schema are supported, got {reference}")
        target: Any = self._root
        for step in reference[2:].split("/"):
            try:
                target = target[unquote(step).replace("~1", "/").replace("~0", "~")]
            except (KeyError, TypeError):
                raise KeyError(name) from None
        resolved = self.copy(target, (*path, reference))
        return resolved if isinstance(resolved, dict) else {"const": resolved}
