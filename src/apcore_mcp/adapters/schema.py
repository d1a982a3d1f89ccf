"""JSON Schemas of apcore modules, made self-contained for MCP and OpenAI."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from apcore import ModuleDescriptor

MAX_REF_DEPTH = 32
MAX_NODES = 100_000
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLES = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})


def map_subschemas(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy in which every direct subschema is changed; data such as `default` or `enum` is none."""
    changed = dict(schema)
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            changed[key] = {name: change(child) for name, child in value.items()}
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [change(child) for child in value]
        elif key in _SINGLES:
            changed[key] = change(value)
    return changed


class SchemaConverter:
    """Inlines every local `$ref` and guarantees an object at the root."""

    def convert_input_schema(self, descriptor: ModuleDescriptor) -> dict[str, Any]:
        return self._ensure_object_type(self._inline_refs(descriptor.input_schema))

    def convert_output_schema(self, descriptor: ModuleDescriptor) -> dict[str, Any]:
        return self._inline_refs(descriptor.output_schema)

    def _inline_refs(self, schema: dict[str, Any]) -> dict[str, Any]:
        body = {key: value for key, value in (schema or {}).items() if key not in ("$defs", "definitions")}
        inlined: dict[str, Any] = _Inliner(schema).copy(body)
        return inlined

    def _ensure_object_type(self, schema: dict[str, Any]) -> dict[str, Any]:
        if not schema:
            return {"type": "object", "properties": {}}
        return schema if schema.get("type") == "object" else {**schema, "type": "object"}


class _Inliner:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._budget = MAX_NODES
        self._path: list[str] = []

    def copy(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return [self.copy(item) for item in node] if isinstance(node, list) else node
        self._budget -= 1
        if self._budget < 0:
            raise ValueError(f"Schema has more than {MAX_NODES} nodes once its references are inlined")
        if not isinstance(node.get("$ref"), str):
            return map_subschemas(node, self.copy)
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return self._resolve(node["$ref"]) | map_subschemas(siblings, self.copy)

    def _resolve(self, reference: str) -> dict[str, Any]:
        name = reference.rpartition("/")[2]
        if reference in self._path or reference == "#":
            cycle = [*self._path[self._path.index(reference) if reference in self._path else 0 :], reference]
            raise ValueError(f"Circular reference: {' -> '.join(step.rpartition('/')[2] for step in cycle)}")
        if len(self._path) >= MAX_REF_DEPTH:
            raise ValueError(f"Maximum recursion depth of {MAX_REF_DEPTH} exceeded at reference {name}")
        if not reference.startswith("#/"):
            raise ValueError(f"Only references within the schema are supported, got {reference}")
        target: Any = self._root
        for step in reference[2:].split("/"):
            try:
                target = target[unquote(step).replace("~1", "/").replace("~0", "~")]
            except (KeyError, TypeError):
                raise KeyError(name) from None
        self._path.append(reference)
        resolved = self.copy(target)
        self._path.pop()
        return resolved if isinstance(resolved, dict) else {}
