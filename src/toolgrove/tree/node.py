"""A node of the tree, and the image of one as the journal keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolgrove.tree.rank import Rank

Payload = dict[str, Any]
NO_TAGS: frozenset[str] = frozenset()


def name_of(payload: Payload) -> str | None:
    """The text under `name`; without such a key, under the only one that differs in letter case."""
    name = payload.get("name")
    if name is None and "name" not in payload:
        twins = [key for key in payload if len(key) == 4 and key.lower() == "name"]
        name = payload[twins[0]] if len(twins) == 1 else None
    return name if isinstance(name, str) else None


class Image(NamedTuple):
    """All that a node is, apart from its id and its children."""

    parent_id: str | None
    rank: Rank
    type: str
    payload: Payload
    tags: frozenset[str]
    group: str | None


class Node:
    """A node; only `Tree` writes to one, and a payload is replaced, never changed."""

    __slots__ = ("children", "group", "holders", "id", "parent", "payload", "rank", "tags", "type")

    def __init__(self, id: str, type: str, payload: Payload, parent: Node | None, rank: Rank) -> None:
        self.id = id
        self.type = type
        self.payload = payload
        self.parent = parent
        self.rank = rank
        self.children: dict[str, Node] | None = None
        self.tags = NO_TAGS
        self.group: str | None = None
        self.holders: Mapping[str, None] | None = None

    @property
    def parent_id(self) -> str | None:
        """The id of the parent; the root has none."""
        return self.parent.id if self.parent is not None else None

    @property
    def name(self) -> str | None:
        """The payload's `name`, whatever the letter case of the key."""
        return name_of(self.payload)

    @property
    def segment(self) -> str:
        """How a path names this node."""
        return name_of(self.payload) or self.id

    @property
    def is_shared(self) -> bool:
        """Whether another node holds the same payload, so that a change through one shows in both."""
        return self.holders is not None and len(self.holders) > 1

    @property
    def children_count(self) -> int:
        """How many children the node has."""
        return len(self.children) if self.children else 0

    def ancestry(self) -> list[Node]:
        """The nodes from the root to this one."""
        chain: list[Node] = []
        node: Node | None = self
        while node is not None:
            chain.append(node)
            node = node.parent
        chain.reverse()
        return chain

    def is_within(self, root: Node) -> bool:
        """Whether this node is `root` or below it."""
        node: Node | None = self
        while node is not None:
            if node is root:
                return True
            node = node.parent
        return False

    def image(self) -> Image:
        """The node's present state, as history and journal keep it."""
        parent = self.parent
        return _image(
            Image,
            (parent.id if parent is not None else None, self.rank, self.type, self.payload, self.tags, self.group),
        )


_image = tuple.__new__
