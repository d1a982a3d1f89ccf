"""Why a query found nothing, where that can be known: properties, types, tags and names that no node has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from toolgrove.errors import brief, closest
from toolgrove.tree.dsl.syntax import (
    And,
    AnyText,
    Attribute,
    Axis,
    Comparison,
    Condition,
    Not,
    Operand,
    Or,
    Presence,
    Property,
    Query,
)
from toolgrove.tree.property_path import MISSING, Many, finder
from toolgrove.tree.tree import Tree, walk

_ATTRIBUTES = {
    "type": "@type",
    "payloadtype": "@type",
    "tag": "@tag",
    "tags": "@tag",
    "id": "@id",
    "nodeid": "@id",
    "depth": "@depth",
    "childcount": "@childCount",
    "childrencount": "@childCount",
    "index": "@index",
}
_ORDERED = (">", ">=", "<", "<=", "between")
_LONGEST = 40


class Clue(NamedTuple):
    """Something that a query asks of a node."""

    operand: Operand
    op: str
    values: tuple[Any, ...]


def of_property(path: str, op: str, values: tuple[Any, ...]) -> Clue:
    """What a condition outside of the language asks of a property."""
    return Clue(Property(path), op, values)


def advice(query: Query, tree: Tree) -> str | None:
    """What may be wrong with a query that finds nothing; None where nothing is known."""
    for path in query.paths:
        conditions = [*path.start_filters, *(one for step in path.steps for one in step.filters)]
        if len(path.steps) == 1 and len(conditions) == 1 and isinstance(conditions[0], AnyText):
            return _no_text(conditions[0].text, tree)
        for step in path.steps:
            found = None if step.segment is None else _segment(step.segment, tree)
            if found is not None:
                return found
        found = on_clues((clue for one in conditions for clue in _clues(one)), tree)
        if found is not None:
            return found
    return None


def on_clues(clues: Iterable[Clue], tree: Tree, *, in_dsl: bool = True) -> str | None:
    """The first thing that no node can answer to; `in_dsl` is whether an attribute can be written in the same place."""
    for clue in clues:
        operand = clue.operand
        found = (
            _attribute(operand.name, clue, tree)
            if isinstance(operand, Attribute)
            else _property(operand.path, clue, tree, in_dsl=in_dsl)
        )
        if found is not None:
            return found
    return None


def no_tag(tag: str, tree: Tree) -> str | None:
    """What to say of a tag that no node has."""
    if tag in tree.tagged:
        return None
    near = closest(tag, list(tree.tagged))
    return f"No node has the tag {_quoted(tag)}." + (f" Did you mean {_quoted(near)}?" if near else "")


def _clues(condition: Condition) -> Iterator[Clue]:
    match condition:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _clues(part)
        case Axis(_, inner):
            yield from _clues(inner)
        case Comparison(operand, op, values) if op != "!=":
            yield Clue(operand, op, values)
        case Presence(operand, True):
            yield Clue(operand, "exists", ())
        case Not() | Comparison() | Presence() | AnyText():
            return


def _segment(segment: str, tree: Tree) -> str | None:
    """A step by name that no node has: perhaps it is a type, or written in another letter case."""
    nodes = [node for node in walk(tree.root) if node.parent is not None]
    if any(node.segment == segment for node in nodes):
        return None
    if any(node.type == segment for node in nodes):
        told = f"A path step is a node's name, and no node has the name {_quoted(segment)}"
        return f"{told}; for the type write //*[@type = {_word(segment)}]."
    folded = segment.casefold()
    twin = next((node.segment for node in nodes if node.segment.casefold() == folded), None)
    near = twin or closest(segment, list({node.segment for node in nodes[:2_000]}))
    more = f" Did you mean {_quoted(near)}?" if near else f" For part of a name write @name contains {_word(segment)}."
    return f"No node has the name {_quoted(segment)}.{more}"


def _attribute(name: str, clue: Clue, tree: Tree) -> str | None:
    if clue.op not in ("=", "in"):
        return None
    wanted = [value for value in clue.values if isinstance(value, str)]
    if name == "tag":
        return next((found for tag in wanted if (found := no_tag(tag, tree)) is not None), None)
    if name == "type":
        types = dict.fromkeys(node.type for node in walk(tree.root))
        if wanted and not any(value in types for value in wanted):
            near = closest(wanted[0], list(types))
            return f"No node has the type {_quoted(wanted[0])}." + (f" Did you mean {_quoted(near)}?" if near else "")
    return None


def _property(path: str, clue: Clue, tree: Tree, *, in_dsl: bool) -> str | None:
    find = finder(path)
    kinds: set[str] = set()
    for node in walk(tree.root):
        found = find(node.payload)
        if found is not MISSING:
            kinds.update(_kind(one) for one in (found if type(found) is Many else [found]))
    if not kinds:
        return f"No node has a property {_quoted(path)}.{_instead(path, clue, tree, in_dsl=in_dsl)}"
    return _other_kind(path, clue, kinds)


def _instead(path: str, clue: Clue, tree: Tree, *, in_dsl: bool) -> str:
    name = _ATTRIBUTES.get(path.casefold())
    if name is not None:
        value = f" = {_word(str(clue.values[0]))}" if clue.values else ""
        where = "Write" if in_dsl else "select_nodes takes"
        return f" {where} {name}{value} for what the node itself knows."
    keys: dict[str, None] = {}
    for node in walk(tree.root):
        keys.update(dict.fromkeys(node.payload))
    near = closest(path, list(keys))
    return f" Did you mean {_quoted(near)}?" if near else " describe_tree lists the properties that there are."


def _other_kind(path: str, clue: Clue, kinds: set[str]) -> str | None:
    """A comparison that can never hold, since no value is converted to fit."""
    if clue.op not in ("=", *_ORDERED) or not clue.values:
        return None
    wanted = _kind(clue.values[0])
    if wanted == "string" and kinds == {"number"}:
        return f"{_quoted(path)} is a number everywhere; write the value without quotes."
    if wanted == "number" and kinds == {"string"}:
        return f"{_quoted(path)} is a text everywhere; write the value in quotes."
    return None


def _no_text(text: str, tree: Tree) -> str:
    told = f"No property of any node contains {_quoted(text)}."
    if any(node.type == text for node in walk(tree.root)):
        return f"{told} For the type write @type = {_word(text)}."
    return f"{told} For the tag write @tag = {_word(text)}." if text in tree.tagged else told


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string" if isinstance(value, str) else "other"


def _quoted(text: str) -> str:
    return f"'{brief(text, _LONGEST)}'"


def _word(text: str) -> str:
    """A value as it is written in a query."""
    shown = brief(text, _LONGEST)
    return shown if shown.isalnum() else f'"{shown}"'
