"""OpenAPI schemas as JSON Schema: self-contained, with what they refer to beside them in `$defs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from toolgrove.pool.http.openapi.document import BadReference, OpenApiDocument

_ONE = frozenset(
    (
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas"))
_OF_OPENAPI = ("nullable", "discriminator", "xml", "externalDocs", "example", "readOnly", "writeOnly")
_OF_NO_USE = ("examples", "deprecated", "$comment", "$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef")
_DROPPED = frozenset((*_OF_OPENAPI, *_OF_NO_USE, "$defs", "definitions"))
_NESTING = 60


class TooMuch(ValueError):
    """Schemas that are larger than a tool's definition may be."""


class Schemas:
    """Translates the schemas of one tool.

    Where a request is described, what only the server sets (`readOnly`) is left out, and the other way round.
    """

    def __init__(self, document: OpenApiDocument, *, side: Literal["request", "response"], budget: int) -> None:
        self._document = document
        self._hidden = "readOnly" if side == "request" else "writeOnly"
        self._left = budget
        self._names: dict[str, str] = {}
        self.defs: dict[str, Any] = {}

    def take(self, schema: Any, room: int = _NESTING) -> Any:
        """The schema in JSON Schema's words."""
        self._spend(1 if room else self._left + 1)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise TooMuch("a schema is not an object")
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referred(reference, schema, room)
        whole = {key: self._keyword(key, item, room) for key, item in schema.items() if self._kept(key)}
        if isinstance(whole.get("properties"), dict):
            self._hide(whole, schema)
        return _with_null(_numbers(whole)) if self._is_nullable(schema) else _numbers(whole)

    def _referred(self, reference: str, schema: Mapping[str, Any], room: int) -> Any:
        name = self._names.get(reference)
        if name is None:
            name = self._names[reference] = self._free(reference)
            self.defs[name] = True  # a schema may refer to itself
            self.defs[name] = self.take(self._document.at(reference), room - 1)
        description = schema.get("description")
        told = {"description": description} if isinstance(description, str) else {}
        return {"$ref": f"#/$defs/{name}", **told}

    def _free(self, reference: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2]) or "schema"
        name, number = stem, 2
        while name in self.defs:
            name, number = f"{stem}_{number}", number + 1
        return name

    def _keyword(self, key: str, value: Any, room: int) -> Any:
        if key in _ONE and isinstance(value, Mapping | bool):
            return self.take(value, room - 1)
        if key in _LIST and isinstance(value, list):
            return [self.take(one, room - 1) for one in value]
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self.take(one, room - 1) for name, one in value.items()}
        if isinstance(value, list | dict):
            self._spend(len(value))
        return value

    def _spend(self, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            raise TooMuch("its schemas are too large")

    def _kept(self, key: str) -> bool:
        return key not in _DROPPED and not key.startswith("x-")

    def _hide(self, whole: dict[str, Any], schema: Mapping[str, Any]) -> None:
        hidden = {name for name, one in schema["properties"].items() if self._is_hidden(one)}
        if hidden:
            whole["properties"] = {name: one for name, one in whole["properties"].items() if name not in hidden}
            if isinstance(whole.get("required"), list):
                whole["required"] = [name for name in whole["required"] if name not in hidden]

    def _is_hidden(self, schema: Any) -> bool:
        try:
            schema = self._document.followed(schema)
        except BadReference:
            return False
        return isinstance(schema, Mapping) and schema.get(self._hidden) is True

    def _is_nullable(self, schema: Mapping[str, Any]) -> bool:
        return self._document.nullable and schema.get("nullable") is True


def _numbers(schema: dict[str, Any]) -> dict[str, Any]:
    """3.0 says exclusive bounds by a flag."""
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(flag), bool):
            exclusive = schema.pop(flag)
            if exclusive and bound in schema:
                schema[flag] = schema.pop(bound)
    return schema


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    enum = schema.get("enum")
    listed = {"enum": [*enum, None]} if isinstance(enum, list) and None not in enum else {}
    return {**schema, "type": [kind, "null"], **listed}
