"""Schemas in few words: a model reads all of them before it does anything.

What many tools have in common is said in a word or two; the server's instructions say the rest once. Of an answer, the
fields at its top are told, and what they hold is left to the answer itself.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_COMMON = {
    "versionToken": "",
    "idempotencyKey": "",
    "paging": "",
    "dryRun": "",
    "fields": "",
    "count": "",
    "op": "",
    "and": "",
    "or": "",
    "direction": "",
    "rootId": "",
    "newParentId": "",
    "includedProperties": "",
    "excludedProperties": "",
    "limit": "",
    "pageSize": "",
    "pageToken": "",
    "maxTokens": "",
    "depthLimit": "Levels below.",
    "format": "",
    "nodeId": "",
    "rootNodeId": "",
    "nodeIds": "",
    "visibleOnly": "",
}
"""The words for arguments that many tools have; one without says enough with its name."""
_SHORT = frozenset(("included", "excluded"))
"""Second names of property filters, which are taken and not told."""
_SAID_ELSEWHERE = frozenset(("filter",))
"""Arguments that another tool describes in full."""
_CHECKED = frozenset(("additionalProperties", "minLength", "minItems", "minimum", "maximum"))
"""What the gate checks, and says where it does not hold."""


_OF_CHANGES = frozenset(("maxTokens",))
"""What every change takes besides; the instructions tell of it once."""


def brief_input(schema: Schema, *, changes: bool = False) -> Schema:
    """The arguments as a model is told of them; the gate takes and checks what the whole schema says."""
    hidden = _OF_CHANGES if changes else frozenset()
    told = {name: one for name, one in schema["properties"].items() if name not in hidden}
    brief = _without_checks({**schema, "properties": {}})
    return {**brief, "properties": {name: _argument(name, one) for name, one in told.items()}}


def _argument(name: str, schema: Schema) -> Schema:
    if name in _COMMON or (name, schema.get("type")) in (("path", "boolean"), ("filters", "object")):
        said = _COMMON.get(name, "")
        schema = {key: value for key, value in schema.items() if key != "description"}
        schema |= {"description": said} if said else {}
    if (name, schema.get("type")) == ("filters", "object"):
        schema = {**schema, "properties": {key: one for key, one in schema["properties"].items() if key not in _SHORT}}
    if name in _SAID_ELSEWHERE and "anyOf" in schema:
        schema = {**schema, "anyOf": [_field(one) for one in schema["anyOf"]]}
    return _inside(schema)


def _inside(schema: Schema) -> Schema:
    """The same for what stands within an argument."""
    brief = _without_checks(schema)
    if isinstance(schema.get("properties"), dict):
        brief["properties"] = {name: _argument(name, one) for name, one in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        brief["items"] = _inside(schema["items"])
    if "anyOf" in schema:
        brief["anyOf"] = [_inside(one) for one in schema["anyOf"]]
    return brief


def _without_checks(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in _CHECKED and (key, value) != ("required", [])}


def brief_output(schema: Schema) -> Schema:
    """The fields of an answer, each with its type alone."""
    return {**_without_checks(schema), "properties": {name: _field(one) for name, one in schema["properties"].items()}}


def _field(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {"anyOf": [_field(one) for one in schema["anyOf"]]}
    kind = schema.get("type")
    if kind == "array":
        items = _field(schema.get("items") or {})
        return {"type": "array", "items": items} if items else {"type": "array", "items": {}}
    return {"type": kind} if kind is not None else {}
