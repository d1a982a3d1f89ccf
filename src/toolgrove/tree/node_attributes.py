"""What a node itself knows, by the names that queries and figures have for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolgrove.tree.node import Node
from toolgrove.tree.property_path import MISSING, Many


class QueryMemory:
    """What one run of a query remembers about the tree, so that no node asks twice."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, int]] = {}
        self._depths: dict[str, int] = {}

    def index(self, node: Node) -> int:
        """The place of a node among its siblings, from 0."""
        parent = node.parent
        if parent is None or parent.children is None:
            return 0
        places = self._places.get(parent.id)
        if places is None:
            places = self._places[parent.id] = {child: place for place, child in enumerate(parent.children)}
        return places[node.id]

    def depth(self, node: Node) -> int:
        """The level of a node; the root is at 0."""
        trail: list[Node] = []
        at: Node | None = node
        while at is not None and at.id not in self._depths:
            trail.append(at)
            at = at.parent
        depth = -1 if at is None else self._depths[at.id]
        for one in reversed(trail):
            depth += 1
            self._depths[one.id] = depth
        return self._depths[node.id]


def attribute(name: str, memory: QueryMemory) -> Callable[[Node], Any]:
    """What finds something that a node itself knows."""
    return _ATTRIBUTES[name](memory)


_ATTRIBUTES: dict[str, Callable[[QueryMemory], Callable[[Node], Any]]] = {
    "id": lambda memory: lambda node: node.id,
    "type": lambda memory: lambda node: node.type,
    "name": lambda memory: lambda node: MISSING if node.name is None else node.name,
    "depth": lambda memory: memory.depth,
    "tag": lambda memory: lambda node: Many(sorted(node.tags)) or MISSING,
    "childCount": lambda memory: lambda node: node.children_count,
    "index": lambda memory: memory.index,
}
ATTRIBUTES = tuple(_ATTRIBUTES)
