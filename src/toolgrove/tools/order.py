"""The order of nodes by a property, in which a page finds its place again."""

from __future__ import annotations

from typing import Any

from toolgrove.notation.json_value import order_key
from toolgrove.tools.context import place_of, ranks_of
from toolgrove.tree.node import Node
from toolgrove.tree.position import position
from toolgrove.tree.property_path import MISSING, Many, finder


class Order:
    """Sorting by a property, and finding a place in the sorted list again."""

    def __init__(self, sort_by: dict[str, Any], root: Node) -> None:
        self.find = finder(sort_by["path"])
        self.descending = sort_by.get("direction") == "desc"
        self.root = root

    def key(self, node: Node) -> tuple[int, Any] | None:
        """What a node sorts by; None comes last."""
        found = self.find(node.payload)
        value = found[0] if type(found) is Many else found
        return None if value is MISSING or value is None else order_key(value)

    def sort(self, nodes: list[Node]) -> list[Node]:
        """The nodes in order; equal ones stay as they were, absent values come last."""
        keyed = [(self.key(node), node) for node in nodes]
        present = [(key, node) for key, node in keyed if key is not None]
        present.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [node for _, node in present] + [node for key, node in keyed if key is None]

    def place(self, node: Node) -> list[Any]:
        """Where a node stands, as a token carries it."""
        key = self.key(node)
        return [None if key is None else list(key), place_of(node, self.root)]

    def is_after(self, node: Node, place: list[Any]) -> bool:
        """Whether a node comes after a place."""
        key, mark = self.key(node), None if place[0] is None else tuple(place[0])
        if key == mark:
            return position(node, self.root) > (ranks_of(place[1]) or [])
        if key is None or mark is None:
            return key is None
        return key < mark if self.descending else key > mark
