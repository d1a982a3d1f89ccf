"""Predicates over payloads, compiled to closures; no value is coerced to fit, but `contains` reads numbers as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolgrove.errors import InvalidArgument
from toolgrove.notation.json_value import same
from toolgrove.tree.node import Node
from toolgrove.tree.property_path import MISSING, Many, finder

Test = Callable[[Any], bool]
Predicate = Callable[[Node], bool]
_NUMBERS = frozenset((int, float))


def equals(value: Any) -> Test:
    """Equal as JSON, so true is never 1."""
    if type(value) is str:
        return lambda found: found == value
    return lambda found: found is not MISSING and same(found, value)


def contains(value: Any) -> Test:
    """Part of a text in any letter case, where a number is the text that it is written as; or a member of a list."""
    wanted = _as_text(value)
    folded = None if wanted is None else wanted.casefold()

    def test(found: Any) -> bool:
        if type(found) is str:
            return folded is not None and folded in found.casefold()
        if type(found) in _NUMBERS:
            return folded is not None and folded in _written(found)
        return isinstance(found, list) and any(same(item, value) or _same_text(item, value) for item in found)

    return test


def _as_text(value: Any) -> str | None:
    """A text, or a number as it is written; None for all else."""
    return value if type(value) is str else _written(value) if type(value) in _NUMBERS else None


def _written(number: float) -> str:
    return json.dumps(number)


def _same_text(item: Any, value: Any) -> bool:
    """Whether a number and a text are written alike."""
    return (
        {type(item), type(value)} & _NUMBERS != set()
        and (text := _as_text(item)) is not None
        and text == _as_text(value)
    )


def any_property(test: Test) -> Predicate:
    """Apply a test to every value of a payload, nested ones too; one is enough."""

    def predicate(node: Node) -> bool:
        stack: list[Any] = list(node.payload.values())
        while stack:
            value = stack.pop()
            if type(value) is dict:
                stack.extend(value.values())
            elif type(value) is list:
                stack.extend(value)
            elif test(value):
                return True
        return False

    return predicate


def starts_with(value: str) -> Test:
    """Begins with the text, in any letter case."""
    folded = value.casefold()
    return lambda found: type(found) is str and found.casefold().startswith(folded)


def ends_with(value: str) -> Test:
    """Ends with the text, in any letter case."""
    folded = value.casefold()
    return lambda found: type(found) is str and found.casefold().endswith(folded)


def greater(value: Any) -> Test:
    """Above a number or a string."""
    if type(value) is str:
        return lambda found: type(found) is str and found > value
    return lambda found: type(found) in _NUMBERS and found > value


def greater_or_equal(value: Any) -> Test:
    """Not below a number or a string."""
    if type(value) is str:
        return lambda found: type(found) is str and found >= value
    return lambda found: type(found) in _NUMBERS and found >= value


def less(value: Any) -> Test:
    """Below a number or a string."""
    if type(value) is str:
        return lambda found: type(found) is str and found < value
    return lambda found: type(found) in _NUMBERS and found < value


def less_or_equal(value: Any) -> Test:
    """Not above a number or a string."""
    if type(value) is str:
        return lambda found: type(found) is str and found <= value
    return lambda found: type(found) in _NUMBERS and found <= value


def within(low: Any, high: Any) -> Test:
    """Between two numbers or two strings, both ends included."""
    if type(low) is str:
        return lambda found: type(found) is str and low <= found <= high
    return lambda found: type(found) in _NUMBERS and low <= found <= high


def is_ordered(value: Any) -> bool:
    """Whether a value can be compared with greater and less."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def check_bounds(low: Any, high: Any) -> str | None:
    """What is wrong with the two ends of a range, if anything."""
    if not is_ordered(low) or not is_ordered(high) or (type(low) is str) != (type(high) is str):
        return "both bounds must be numbers, or both strings"
    if low > high:
        return f"the bounds are reversed; write {high!r} before {low!r}"
    return None


def on_property(path: str, test: Test) -> Predicate:
    """Apply a test to what a path finds; one of many is enough."""
    find = finder(path)

    def predicate(node: Node) -> bool:
        found = find(node.payload)
        return any(map(test, found)) if type(found) is Many else test(found)

    return predicate


def every(parts: Sequence[Predicate]) -> Predicate:
    """Holds where all parts hold."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda node: first(node) and second(node)
    return lambda node: all(part(node) for part in parts)


def either(parts: Sequence[Predicate]) -> Predicate:
    """Holds where at least one part does."""
    if len(parts) == 1:
        return parts[0]
    return lambda node: any(part(node) for part in parts)


_COMPARISONS: dict[str, Callable[[Any], Test]] = {"eq": equals, "contains": contains, "gt": greater, "lt": less}


def compile_predicate(condition: Mapping[str, Any], where: str = "predicates") -> Predicate:
    """Compile `{path, op, value}`, `{and: […]}` or `{or: […]}`."""
    for word, join in (("and", every), ("or", either)):
        if word in condition:
            parts = [compile_predicate(part, f"{where}.{word}[{index}]") for index, part in enumerate(condition[word])]
            return join(parts)
    op, value = condition["op"], condition.get("value")
    if op == "between":
        if not isinstance(value, list) or len(value) != 2:
            raise _bad(where, "between needs value: [low, high]")
        problem = check_bounds(*value)
        if problem:
            raise _bad(where, problem)
        return on_property(condition["path"], within(*value))
    if op in ("gt", "lt") and not is_ordered(value):
        raise _bad(where, f"{op} needs a number or a string")
    return on_property(condition["path"], _COMPARISONS[op](value))


def _bad(where: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"Argument {where!r}: {problem}.", reason="predicate", path=where)
