"""Bringing one branch back to a moment, exactly, without losing what came into it from elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from toolgrove.errors import NotFound, ParentGone
from toolgrove.notation.json_value import identical
from toolgrove.tree.moment import Moment
from toolgrove.tree.node import Image, Node
from toolgrove.tree.tree import Tree, is_still
from toolgrove.tree.undo import with_free_ranks


class Branch(NamedTuple):
    """What nodes have to become, and which of them go back to places outside of the branch."""

    images: dict[str, Image | None]
    sent_back: list[str]


def branch_at(tree: Tree, moment: Moment, top: str, snapshot: str) -> Branch:
    """The branch of a node as it was.

    A node that came in from elsewhere goes back to where it was, with what is new below it; one that is new in the
    branch goes. The place of a node that is not in the branch must still be there: if its parent is gone, nothing
    happens, and the error says how to bring that back.
    """
    if moment.state(top) is None:
        raise NotFound(
            f"The snapshot {snapshot!r} has no node {top!r}. snapshot_diff shows what it has and the tree does not.",
            nodeId=top,
        )
    images = {node_id: moment.image(node_id) for node_id in moment.walk(top)}
    sent_back = _send_back(tree, moment, images)
    for node_id in (top, *sent_back):
        _check_parent(tree, moment, images, node_id, snapshot)
    payloads = {one.group: one.payload for one in images.values() if one is not None and one.group is not None}
    for node_id in sent_back:
        live = tree[node_id].image()
        then = moment.state(node_id)
        if then is not None:
            images[node_id] = live._replace(
                parent_id=then.parent_id, rank=then.rank, payload=payloads.get(live.group or "", live.payload)
            )
    changed = {key: image for key, image in images.items() if not is_still(image, tree.nodes.get(key))}
    fitting = with_free_ranks(tree, changed)
    for group, payload in payloads.items():
        for other in tree.groups.get(group, ()):
            if other not in images and not identical(tree[other].payload, payload):
                fitting[other] = tree[other].image()._replace(payload=payload)
    return Branch(fitting, sent_back)


def _send_back(tree: Tree, moment: Moment, images: dict[str, Image | None]) -> list[str]:
    """Who stands in the branch now and did not then: the new ones are marked to go, the others are returned."""
    branch = frozenset(images)
    sent_back: list[str] = []
    stack: list[tuple[Node, bool]] = [(tree.nodes[node_id], False) for node_id in branch if node_id in tree.nodes]
    while stack:
        node, leaves = stack.pop()
        for child in (node.children or {}).values():
            if child.id in branch:
                continue
            known = moment.state(child.id) is not None
            if known:
                sent_back.append(child.id)
            elif not leaves:
                images[child.id] = None
            stack.append((child, known or leaves))
    return sent_back


def _check_parent(tree: Tree, moment: Moment, images: dict[str, Image | None], node_id: str, snapshot: str) -> None:
    state = moment.state(node_id)
    parent_id = state.parent_id if state is not None else None
    if parent_id is None or parent_id in tree or parent_id in images:
        return
    top = parent_id
    while (above := moment.state(top)) is not None and above.parent_id is not None and above.parent_id not in tree:
        top = above.parent_id
    raise ParentGone(node_id=node_id, parent_id=parent_id, top=top, snapshot=snapshot)
