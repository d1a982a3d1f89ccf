"""JSON Schemas of apcore modules, made self-contained for MCP and OpenAI."""

import copy
import marshal
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from apcore import ModuleDescriptor

from apcore_mcp.modules import Json

MAX_REF_DEPTH = 32
MAX_NODES = 100_000
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_CONDITIONS = frozenset({"not", "if", "then", "else"})
_ITEMS = frozenset({"items", "contains", "additionalItems", "unevaluatedItems"})
_OTHERS = frozenset({"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"})
_SINGLES = _CONDITIONS | _ITEMS | _OTHERS
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
_REFERRING = (b"$ref", b"$defs", b"definitions", b"$dynamicRef", b"$recursiveRef")


def map_subschemas(schema: Json, change: Callable[[Any], Any]) -> Json:
    """A copy in which every direct subschema is changed; values such as `default` and `enum` are data, not schemas."""
    changed: Json = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            changed[key] = {name: change(child) for name, child in value.items()}
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [change(child) for child in value]
        elif key in _SINGLES:
            changed[key] = change(value)
        else:
            changed[key] = copy.deepcopy(value) if isinstance(value, (list, dict)) else value
    return changed


class SchemaConverter:
    """Inlines every local `$ref` and guarantees an object at the root."""

    def convert_input_schema(self, descriptor: ModuleDescriptor) -> Json:
        """What the module takes; always an object."""
        return self._ensure_object_type(self._inline_refs(descriptor.input_schema))

    def convert_output_schema(self, descriptor: ModuleDescriptor) -> Json:
        """What the module gives; empty if it does not say."""
        return self._inline_refs(descriptor.output_schema)

    def _inline_refs(self, schema: Json) -> Json:
        try:
            plain = marshal.dumps(schema)  # the quickest copy there is, and enough for most schemas
        except ValueError:
            plain = b"$ref"
        if any(word in plain for word in _REFERRING):
            inlined: Json = _Inliner(schema).copy(schema)
        else:
            inlined = marshal.loads(plain)  # noqa: S302 - our own bytes
        return inlined

    def _ensure_object_type(self, schema: Json) -> Json:
        if not schema:
            return {"type": "object", "properties": {}}
        return {**schema, "type": "object"}


class _Inliner:
    """Copies one schema with its references replaced by what they point at, within bounds."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._budget = MAX_NODES
        self._path: list[str] = []

    def copy(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.copy(item) for item in node]
        if not isinstance(node, dict):
            return node
        self._budget -= 1
        if self._budget < 0:
            raise ValueError(f"Schema has more than {MAX_NODES} nodes once its references are inlined")
        if not _DYNAMIC.isdisjoint(node):
            raise ValueError("$dynamicRef and $recursiveRef cannot be inlined; use $ref")
        own = {key: value for key, value in node.items() if key not in ("$ref", "$defs", "definitions")}
        inlined = map_subschemas(own, self.copy)
        if isinstance(inlined.get("discriminator"), dict):
            inlined["discriminator"].pop("mapping", None)  # it names definitions, which are gone
        reference = node.get("$ref")
        return self._resolve(reference) | inlined if isinstance(reference, str) else inlined

    def _resolve(self, reference: str) -> Json:
        if reference in self._path or reference == "#":
            names = [step.rpartition("/")[2] for step in (*self._path, reference)]
            raise ValueError(f"Circular reference: {' -> '.join(names)}")
        if len(self._path) >= MAX_REF_DEPTH:
            raise ValueError(f"Maximum recursion depth of {MAX_REF_DEPTH} exceeded at {reference}")
        self._path.append(reference)
        resolved = self.copy(self._target(reference))
        self._path.pop()
        return resolved if isinstance(resolved, dict) else {}

    def _target(self, reference: str) -> Any:
        target: Any = self._root
        steps = [
            unquote(step).replace("~1", "/").replace("~0", "~") for step in reference.removeprefix("#/").split("/")
        ]
        try:
            for step in steps:
                target = target[int(step)] if isinstance(target, list) else target[step]
        except (KeyError, IndexError, TypeError, ValueError):
            raise KeyError(steps[-1]) from None
        return target
