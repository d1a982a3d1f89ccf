"""Counts, sums and extremes over some nodes, by group; no value is ever coerced to fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgrove.errors import InvalidArgument, closest
from toolgrove.notation.json_value import canonical, copied, order_key
from toolgrove.tree.node import Node
from toolgrove.tree.node_attributes import ATTRIBUTES, QueryMemory, attribute
from toolgrove.tree.property_path import MISSING, Many, PropertyFilter, finder

OPS = ("count", "distinct", "min", "max", "sum", "avg")
Values = Callable[[Node], Sequence[Any]]
"""All that one path finds at a node; nothing where it is missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One figure of a group: an operation, and the path of what it looks at; count alone can do without."""

    op: str
    path: str | None = None

    @property
    def name(self) -> str:
        """What the figure is called in a group."""
        return self.op if self.path is None else f"{self.op}({self.path})"


COUNT = Measure(op="count")


def read_measures(given: Iterable[Mapping[str, Any]]) -> tuple[Measure, ...]:
    """The measures of a call; without any, how many nodes there are."""
    measures = tuple(dict.fromkeys(Measure(op=one["op"], path=one.get("path")) for one in given)) or (COUNT,)
    for at, one in enumerate(measures):
        if one.path is None and one.op != "count":
            raise InvalidArgument(
                f"Argument 'measures[{at}]': {one.op} needs a path, such as {{op: {one.op}, path: price}}.",
                reason="measure",
                path=f"measures[{at}]",
            )
    return measures


class Aggregation:
    """Figures by group; a path with several values puts a node into the group of each."""

    def __init__(self, *, group_by: str | None, measures: Sequence[Measure], shown: PropertyFilter) -> None:
        self._measures = measures
        memory = QueryMemory()
        self._key = None if group_by is None else _values(group_by, "groupBy", memory, shown)
        self._find = [None if one.path is None else _values(one.path, "measures", memory, shown) for one in measures]
        self._groups: dict[str, _Group] = {}

    def run(self, nodes: Iterable[Node]) -> tuple[list[dict[str, Any]], int]:
        """The groups, those with most nodes first, and how many nodes there are."""
        total = 0
        for node in nodes:
            total += 1
            found = [None if find is None else find(node) for find in self._find]
            for key in _distinct(self._key(node) or (None,)) if self._key is not None else (None,):
                self._group(key).add(found)
        if self._key is None:
            self._group(None)
        groups = sorted(self._groups.values(), key=lambda group: -group.nodes)
        return [group.to_json(keyed=self._key is not None) for group in groups], total

    def _group(self, key: Any) -> _Group:
        kept = _mark(key)
        if kept not in self._groups:
            self._groups[kept] = _Group(key, self._measures)
        return self._groups[kept]


class _Group:
    """One group, as it grows."""

    def __init__(self, key: Any, measures: Sequence[Measure]) -> None:
        self.nodes = 0
        self._key = key
        self._measures = measures
        self._having = [0] * len(measures)
        self._values: list[list[Any]] = [[] for _ in measures]

    def add(self, found: Sequence[Sequence[Any] | None]) -> None:
        self.nodes += 1
        for at, values in enumerate(found):
            if values:
                self._having[at] += 1
                if self._measures[at].op != "count":
                    self._values[at].extend(values)

    def to_json(self, *, keyed: bool) -> dict[str, Any]:
        figures = {
            one.name: (self.nodes if one.path is None else self._having[at])
            if one.op == "count"
            else _FIGURES[one.op](self._values[at])
            for at, one in enumerate(self._measures)
        }
        return {"key": copied(self._key), **figures} if keyed else figures


def _values(path: str, argument: str, memory: QueryMemory, shown: PropertyFilter) -> Values:
    if path.startswith("@"):
        known = {name.lower(): name for name in ATTRIBUTES}
        name = known.get(path[1:].lower())
        if name is None:
            near = closest(path[1:], ATTRIBUTES)
            hint = f"Did you mean @{near}?" if near else f"There are {', '.join('@' + one for one in ATTRIBUTES)}."
            raise InvalidArgument(f"Argument {argument!r}: there is no {path}. {hint}", reason="measure", path=argument)
        of_node = attribute(name, memory)
        return lambda node: _flat(of_node(node))
    find = finder(path)
    # What a read would not show is not there for a figure either.
    if shown.included or shown.excluded:
        return lambda node: _flat(find(shown(node.payload)))
    return lambda node: _flat(find(node.payload))


def _flat(found: Any) -> Sequence[Any]:
    """The values that count: those in a list one by one, null as none."""
    if found is MISSING or found is None:
        return ()
    if type(found) is Many:
        return [one for value in found for one in _flat(value)]
    return [one for one in found if one is not None] if isinstance(found, list) else (found,)


def _distinct(values: Sequence[Any]) -> Sequence[Any]:
    return values if len(values) == 1 else list({_mark(value): value for value in values}.values())


def _mark(value: Any) -> str:
    """What two values that are equal have in common; 1 and 1.0 are."""
    return canonical(int(value) if type(value) is float and value.is_integer() else value)


def _numbers(values: Iterable[Any]) -> list[int | float]:
    return [value for value in values if type(value) in (int, float)]


def _sum(values: Iterable[Any]) -> int | float | None:
    numbers = _numbers(values)
    if all(type(number) is int for number in numbers):
        return sum(numbers)
    try:
        return math.fsum(numbers)
    except OverflowError:
        return None


def _average(values: Iterable[Any]) -> float | None:
    numbers = _numbers(values)
    total = _sum(numbers)
    try:
        return None if total is None or not numbers else total / len(numbers)
    except OverflowError:
        return None


_FIGURES: dict[str, Callable[[list[Any]], Any]] = {
    "distinct": lambda values: len({_mark(value) for value in values}),
    "min": lambda values: copied(min(values, key=order_key, default=None)),
    "max": lambda values: copied(max(values, key=order_key, default=None)),
    "sum": _sum,
    "avg": _average,
}
