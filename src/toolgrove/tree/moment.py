"""The tree as it was at a moment: the live one, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.tree.history import Images
from toolgrove.tree.node import Image, Node
from toolgrove.tree.rank import Rank
from toolgrove.tree.tree import Tree

State = Image | Node


class Moment:
    """What every node was, given how the nodes differ from the live tree that have changed since."""

    def __init__(self, tree: Tree, images: Images) -> None:
        self._tree, self._images = tree, images
        self._arrived: dict[str, list[tuple[Rank, str]]] | None = None
        self._places: dict[str, dict[str, int]] = {}
        self._holders: dict[str, dict[str, None]] = {}

    def state(self, node_id: str) -> State | None:
        """What a node was; None if there was none."""
        return self._images[node_id] if node_id in self._images else self._tree.nodes.get(node_id)

    def image(self, node_id: str) -> Image | None:
        """The same to be kept."""
        state = self.state(node_id)
        return state.image() if isinstance(state, Node) else state

    def children(self, node_id: str) -> list[str]:
        """The children that a node had, in their order."""
        node = self._tree.nodes.get(node_id)
        live = (node.children or {}).values() if node is not None else ()
        ranked = [(one.rank, one.id) for one in live if one.id not in self._images]
        ranked += self._arrivals().get(node_id, [])
        return [one for _, one in sorted(ranked)]

    def index(self, parent_id: str, node_id: str) -> int:
        """The place that a child had among its siblings, from 0."""
        if parent_id not in self._places:
            self._places[parent_id] = {one: place for place, one in enumerate(self.children(parent_id))}
        return self._places[parent_id][node_id]

    def walk(self, node_id: str) -> Iterator[str]:
        """The ids of a node and of all that was below it, in pre-order."""
        stack = [node_id]
        while stack:
            one = stack.pop()
            yield one
            stack.extend(reversed(self.children(one)))

    def subtree(self, node_id: str) -> Node | None:
        """A node with all that was below it, apart from the live tree; None if there was no such node."""
        state = self.state(node_id)
        if state is None:
            return None
        above = None if state.parent_id is None else Node(state.parent_id, "", {}, None, 0)
        top = self._node(node_id, state, above)
        stack = [top]
        while stack:
            node = stack.pop()
            below = ((child, self.state(child)) for child in self.children(node.id))
            node.children = {key: self._node(key, one, node) for key, one in below if one is not None} or None
            stack.extend((node.children or {}).values())
        return top

    def _node(self, node_id: str, state: State, parent: Node | None) -> Node:
        node = Node(node_id, state.type, state.payload, parent, state.rank)
        node.tags, node.group = state.tags, state.group
        if node.group is not None:
            node.holders = self._sharing(node.group)
        return node

    def _sharing(self, group: str) -> dict[str, None]:
        if group not in self._holders:
            live = (one for one in self._tree.groups.get(group, ()) if one not in self._images)
            then = (one for one, image in self._images.items() if image is not None and image.group == group)
            self._holders[group] = dict.fromkeys([*live, *then])
        return self._holders[group]

    def _arrivals(self) -> dict[str, list[tuple[Rank, str]]]:
        if self._arrived is None:
            self._arrived = {}
            for node_id, image in self._images.items():
                if image is not None and image.parent_id is not None:
                    self._arrived.setdefault(image.parent_id, []).append((image.rank, node_id))
        return self._arrived
