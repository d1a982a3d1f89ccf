"""What a selection query says, once read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the payload, by its dotted path."""

    path: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something the node itself knows: @id, @type, @name, @depth, @tag, @childCount, @index."""

    name: str


Operand = Property | Attribute


@dataclass(frozen=True, slots=True)
class Comparison:
    """An operand held against one value, two bounds, or a list."""

    operand: Operand
    op: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether an operand is there at all."""

    operand: Operand
    exists: bool


@dataclass(frozen=True, slots=True)
class AnyText:
    """Whether any property contains a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    inner: Condition


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A condition on a relative: parent, ancestor, child, descendant."""

    name: str
    inner: Condition


Condition = Comparison | Presence | AnyText | Not | And | Or | Axis


@dataclass(frozen=True, slots=True)
class Step:
    """One `/segment[…]` or `//segment[…]`; no segment means any name."""

    descendant: bool
    segment: str | None
    filters: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the root, or from the node with the id `start`."""

    start: str | None
    start_filters: tuple[Condition, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What any of its paths selects."""

    paths: tuple[Path, ...]
