"""Whether a message about a field might repeat a value that its schema calls sensitive."""

from collections.abc import Iterator
from typing import Any

from apcore_mcp.modules import Json

MARK = "x-sensitive"
_BRANCHES = ("allOf", "anyOf", "oneOf")


def may_be_sensitive(schema: Json, path: str) -> bool:
    """Whether the dotted path leads to something sensitive or, where something is, cannot be followed for certain."""
    schemas: list[Any] = [schema]
    for step in path.split(".") if path else ():
        schemas = [each for one in schemas for each in _branches(one)]
        if not _has_mark(schemas):
            return False
        below = [each["properties"][step] for each in schemas if step in each.get("properties", {})]
        below += [each["items"] for each in schemas if step.isdigit() and "items" in each]
        if not below or any(_has_mark_aside(each) for each in schemas):
            return True
        schemas = below
    return _has_mark(schemas)


def _branches(schema: Any) -> Iterator[Json]:
    """The schema, and those that it puts together."""
    if isinstance(schema, dict):
        yield schema
        for branch in [branch for key in _BRANCHES for branch in schema.get(key, ())]:
            yield from _branches(branch)


def _has_mark(schema: Any) -> bool:
    """Whether anything in it is marked."""
    if isinstance(schema, dict):
        return bool(schema.get(MARK)) or any(map(_has_mark, schema.values()))
    return isinstance(schema, list) and any(map(_has_mark, schema))


def _has_mark_aside(schema: Json) -> bool:
    """Whether a mark is where no plain step leads: on itself, in a map, a condition, or behind a name with dots."""
    beyond = [child for name, child in schema.get("properties", {}).items() if "." in name or "/" in name]
    beyond += [value for key, value in schema.items() if key not in (*_BRANCHES, "properties", "items")]
    return bool(schema.get(MARK)) or _has_mark(beyond)
