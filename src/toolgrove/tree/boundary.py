"""The write root: whether a change stays inside the subtree that an agent may write."""

from __future__ import annotations

from toolgrove.notation.json_value import identical
from toolgrove.tree.history import Images
from toolgrove.tree.node import Image, Node
from toolgrove.tree.tree import Tree


def outside(tree: Tree, before: Images, root_id: str) -> str | None:
    """The first touched node that lies outside the subtree of `root_id`, now or before the change."""
    now: dict[str, bool] = {}
    then: dict[str, bool] = {}
    for node_id, image in before.items():
        node = tree.nodes.get(node_id)
        if node is not None and image is not None and _is_unchanged(node, image):
            continue
        if node_id == root_id:
            # The root of the subtree may be edited, but its own place belongs to the world outside.
            place = None if node is None else (node.parent_id, node.rank)
            if image is None or place != (image.parent_id, image.rank):
                return node_id
            continue
        if node is not None and not _is_inside(tree, node_id, root_id, {}, now):
            return node_id
        if image is not None and not _is_inside(tree, node_id, root_id, before, then):
            return node_id
    return None


def _is_unchanged(node: Node, image: Image) -> bool:
    """Whether a node was touched and is what it was: whoever restores what is there already changes nothing."""
    now = node.image()
    return now._replace(payload=image.payload) == image and identical(now.payload, image.payload)


def _is_inside(tree: Tree, node_id: str, root_id: str, before: Images, known: dict[str, bool]) -> bool:
    trail: list[str] = []
    at: str | None = node_id
    while at is not None and at != root_id and at not in known:
        trail.append(at)
        image = before.get(at)
        if image is not None:
            at = image.parent_id
        else:
            node = tree.nodes.get(at)
            at = node.parent_id if node is not None else None
    inside = at is not None and known.get(at, True)
    known.update(dict.fromkeys(trail, inside))
    return inside
