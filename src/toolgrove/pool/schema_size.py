"""How large a JSON Schema becomes when its references are followed: a validator walks all of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from toolgrove.notation import json_pointer
from toolgrove.notation.json_schema import REFERENCES

MAX_PARTS = 100_000
MAX_CHAIN = 200
_ANCHORS = ("$anchor", "$dynamicAnchor")


class SchemaTooLarge(Exception):
    """Following the references leads too far."""


def check_schema_size(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is small to read and endless to apply; one that refers to itself is fine."""
    if any(_refers(schema)):
        _Unfolding(schema).parts(schema, 0)


class _Unfolding:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._anchors = dict(_anchored(schema))
        self._known: dict[int, int] = {}
        self._open: set[int] = set()

    def parts(self, node: Any, depth: int) -> int:
        """How many schemas stand where this one does, itself included."""
        if not isinstance(node, dict | list):
            return 0
        place = id(node)
        if place in self._open:  # validators stop at a schema that they are in already
            return 1
        known = self._known.get(place)
        if known is not None:
            return known
        if depth > MAX_CHAIN:
            raise SchemaTooLarge
        self._open.add(place)
        followed = (*_children(node), *self._targets(node))
        count = 1 + sum(self.parts(child, depth + 1) for child in followed)
        self._open.discard(place)
        if count > MAX_PARTS:
            raise SchemaTooLarge
        self._known[place] = count
        return count

    def _targets(self, node: Any) -> Iterator[Any]:
        for keyword in REFERENCES if isinstance(node, dict) else ():
            reference = node.get(keyword)
            if isinstance(reference, str) and reference.startswith("#"):
                yield self._target(reference[1:])

    def _target(self, fragment: str) -> Any:
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(unquote(fragment))
        place = json_pointer.at(self._schema, fragment)
        return None if place is json_pointer.NOWHERE else place  # as the validator will say


def _refers(node: Any) -> Iterator[bool]:
    if isinstance(node, dict):
        yield not node.keys().isdisjoint(REFERENCES)
    for child in _children(node):
        yield from _refers(child)


def _anchored(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for keyword in _ANCHORS:
            if isinstance(node.get(keyword), str):
                yield node[keyword], node
    for child in _children(node):
        yield from _anchored(child)


def _children(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
