"""Conditions as arguments: what they look like, what they compile to, and why nothing met them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from toolgrove.errors import InvalidArgument, SchemaMismatch, closest
from toolgrove.tools.context import ToolContext
from toolgrove.tools.querying import advice
from toolgrove.tools.schema import Schema, anything, choice, listing, record, text
from toolgrove.tree.predicate import Predicate, compile_predicate, every
from toolgrove.types import Result

if TYPE_CHECKING:
    from toolgrove.tree.dsl import Selection
    from toolgrove.tree.dsl.advice import Clue

ONLY_THE_START = "Only '{0}' itself matches, and a condition looks at what is below it. #{0} selects the node itself."
_GROUPS = 16
_SIGNS = {"eq": "=", "gt": ">", "lt": "<"}


def _predicate(*ops: str, value: str) -> Schema:
    return record(
        {
            "path": text("Dotted property path.", minLength=1),
            "op": choice("How to compare.", *ops),
            "value": anything(value),
        },
        "path",
        "op",
        "value",
    )


FILTER = _predicate("eq", "contains", value="What to compare with; contains reads numbers as text.")
PREDICATE = _predicate("eq", "contains", "gt", "lt", "between", value="What to compare with; between: [low, high].")
CONDITION = record(
    {
        **PREDICATE["properties"],
        "and": listing({"type": "object"}, "Conditions like this one that must all hold.", minItems=1),
        "or": listing({"type": "object"}, "Conditions like this one of which one must hold.", minItems=1),
    },
    description=f"{{path, op, value}}, or a group: {{and: […]}} or {{or: […]}}, at most {_GROUPS} deep.",
)
CONDITIONS = listing(CONDITION), {"type": "object", "description": "One such condition."}
_COMPARES = ("path", "op", "value")
_SHAPES = 'write {"path": …, "op": …, "value": …}, {"and": […]} or {"or": […]}'


def compile_predicates(conditions: Any, argument: str) -> Predicate:
    """One predicate or a list of them that must all hold."""
    all_of = conditions if isinstance(conditions, list) else [conditions]
    places = [f"{argument}[{at}]" if isinstance(conditions, list) else argument for at in range(len(all_of))]
    for one, where in zip(all_of, places, strict=True):
        _check(one, where, argument, _GROUPS)
    parts = [compile_predicate(one, where) for one, where in zip(all_of, places, strict=True)]
    return every(parts) if parts else lambda node: True


def _check(condition: Any, where: str, argument: str, room: int) -> None:
    """See that a condition is one of the shapes there are; the schema says so of the outermost alone."""
    if room == 0:
        raise InvalidArgument(f"{argument!r} nests more than {_GROUPS} groups.", reason="predicate")
    if not isinstance(condition, dict):
        raise SchemaMismatch(path=where, problem=f"a condition is an object: {_SHAPES}")
    for word in ("and", "or"):
        if word in condition:
            parts = condition[word]
            if len(condition) > 1 or not isinstance(parts, list) or not parts:
                raise SchemaMismatch(
                    path=where, problem=f"a group is {word!r} with a list of conditions alone: {_SHAPES}"
                )
            for at, part in enumerate(parts):
                _check(part, f"{where}.{word}[{at}]", argument, room - 1)
            return
    if condition.keys() != set(_COMPARES):
        odd = next((key for key in condition if key not in _COMPARES), None)
        missing = next((key for key in _COMPARES if key not in condition), None)
        what = f"{odd!r} is not known" if odd is not None else f"{missing!r} is missing"
        raise SchemaMismatch(path=where, problem=f"{what}: {_SHAPES}")
    path, ops = condition["path"], PREDICATE["properties"]["op"]["enum"]
    if not isinstance(path, str) or not path:
        raise SchemaMismatch(path=f"{where}.path", problem="write a dotted property path")
    if condition["op"] not in ops:
        near = closest(str(condition["op"]), ops)
        hint = f"Did you mean {near!r}?" if near else None
        raise SchemaMismatch(path=f"{where}.op", problem=f"write one of {', '.join(ops)}", hint=hint)


def no_match(context: ToolContext, conditions: Any) -> Result:
    """The hint of conditions that nothing meets, where there is one."""
    return hinted(advice().on_clues(_clues(conditions), context.tree, in_dsl=False))


def _clues(conditions: Any) -> Iterator[Clue]:
    for one in conditions if isinstance(conditions, list) else [conditions]:
        for word in ("and", "or"):
            if word in one:
                yield from _clues(one[word])
        if "path" in one:
            value = one["value"]
            values = tuple(value) if one["op"] == "between" else (value,)
            yield advice().of_property(one["path"], _SIGNS.get(one["op"], one["op"]), values)


def why_nothing(selection: Selection) -> Result:
    """The hint of a query that finds nothing: only the node where it starts would match, or what no node has."""
    if selection.matches_start():
        return {"hint": ONLY_THE_START.format(selection.root.id)}
    return hinted(advice().advice(selection.query, selection.tree))


def hinted(text: str | None) -> Result:
    """The field of an answer that carries a hint, where there is one."""
    return {} if text is None else {"hint": text}
