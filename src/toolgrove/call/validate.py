"""Checks the arguments against the tool's schema, and replaces them by a copy that no one else can change."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import anyio.to_thread

from toolgrove.errors import SchemaMismatch, brief, closest
from toolgrove.giving_way import giving_way
from toolgrove.notation.json_schema import compiled
from toolgrove.notation.json_value import detached, has_many
from toolgrove.types import Call, Next, Result, ToolSpec

_NESTING = 200
_EXCERPT = 500
_MANY = 20_000
"""Values whose copy takes some ten milliseconds."""


class ValidateStep:
    """Validators are compiled once per tool definition."""

    def __init__(self) -> None:
        self._validators: dict[str, tuple[ToolSpec, Any]] = {}

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if call.refusal is not None:
            raise call.refusal
        if not isinstance(call.arguments, dict):
            raise SchemaMismatch(path="", problem="must be an object")
        if has_many(call.arguments, _MANY):
            return self._large(call, onward)
        call.arguments = detached(call.arguments, "", _NESTING)
        self._check(call)
        return onward(call)

    async def _large(self, call: Call, onward: Next) -> Result:
        """The same in a thread, so that others need not wait for it."""
        with giving_way():
            call.arguments = await anyio.to_thread.run_sync(detached, call.arguments, "", _NESTING)
            self._check(call)
            return await onward(call)

    def _check(self, call: Call) -> None:
        tool = call.granted
        spec = tool.spec
        schema = spec.input_schema if tool.accepts is None else tool.accepts
        known = self._validators.get(spec.name)
        if known is None or known[0] is not spec:
            known = self._validators[spec.name] = (spec, compiled(_without(schema, tool.demands)))
        if not known[1].is_valid(call.arguments):
            if tool.kind == "builtin":
                _unset(call.arguments, _without(schema, tool.demands))
            for error in known[1].iter_errors(call.arguments):
                raise _mismatch(error, schema)


def _unset(value: Any, schema: Mapping[str, Any]) -> None:
    """Take out nulls in the place of what is optional: some clients send them for all that a model did not set."""
    for branch in schema.get("anyOf", ()):
        _unset(value, branch)
    if isinstance(value, list):
        for item in value:
            _unset(item, schema.get("items", {}))
    elif isinstance(value, dict):
        known, required = schema.get("properties", {}), schema.get("required", ())
        for name in [name for name, one in value.items() if one is None and name in known and name not in required]:
            if not _takes_null(known[name]):
                del value[name]
        for name in value.keys() & known.keys():
            _unset(value[name], known[name])


def _takes_null(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type", [])
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or any(map(_takes_null, schema.get("anyOf", ())))


def _without(schema: Mapping[str, Any], demands: tuple[str, ...]) -> Mapping[str, Any]:
    """The schema, less the required arguments that the source asks for itself."""
    required = schema.get("required", ())
    return {**schema, "required": [name for name in required if name not in demands]} if demands else schema


def _telling(error: Any) -> Any:
    """The error in the one branch of a choice whose type the value has; of several, none tells more than the choice."""
    while error.kind.name == "anyOf":
        place = list(error.instance_path)
        errors = [found[0] for found in error.kind.context if found]
        near = [one for one in errors if one.kind.name != "type" or list(one.instance_path) != place]
        if len(near) != 1:
            break
        error = near[0]
    return error


def _mismatch(error: Any, schema: Mapping[str, Any]) -> SchemaMismatch:
    error, path = _telling(error), ""
    for part in error.instance_path:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    known = list(schema.get("properties", {}))
    hint = None
    if error.kind.name == "additionalProperties" and not path:
        unknown = error.kind.unexpected
        near = closest(unknown[0], known)
        hint = f"Did you mean {near!r}?" if near else f"Known arguments: {', '.join(known)}."
    elif error.kind.name == "required":
        hint = f"Required: {', '.join(schema.get('required', ()))}." if not path else None
    # A validator repeats the whole value, which the caller knows.
    return SchemaMismatch(path=brief(path, _EXCERPT), problem=brief(error.message, _EXCERPT), hint=hint)
