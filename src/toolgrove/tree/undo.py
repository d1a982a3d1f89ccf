"""Taking changes back: what an agent did last, as long as no one has built on it since."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from toolgrove.errors import Conflict
from toolgrove.tree.history import Commit, History, Images
from toolgrove.tree.node import Image
from toolgrove.tree.rank import Rank, between
from toolgrove.tree.tree import Tree, is_still

Move = Literal["do", "undo", "redo"]
Group = tuple[Commit, ...]


class UndoStacks:
    """What one agent can take back, and bring back again; each group is one call's commits."""

    def __init__(self) -> None:
        self.undo: list[Group] = []
        self.redo: list[Group] = []

    def twin(self) -> UndoStacks:
        """What can be taken back, to be changed apart from this."""
        twin = UndoStacks()
        twin.undo, twin.redo = self.undo.copy(), self.redo.copy()
        return twin

    def shift(self, move: Move, commits: Group) -> Callable[[], None]:
        """Note what a call did; returns a function that takes the note back."""
        undo, redo = self.undo, self.redo
        if move == "do":
            if commits:
                undo.append(commits)
                self.redo = []
            return partial(self._unshift, undo if commits else [], None, None, redo)
        source, target = (undo, redo) if move == "undo" else (redo, undo)
        # After a restart the group may lie before the history that was kept.
        taken = source.pop() if source else None
        if commits:
            target.append(commits)
        return partial(self._unshift, target if commits else [], source, taken, redo)

    def _unshift(self, grown: list[Group], shrunk: list[Group] | None, taken: Group | None, redo: list[Group]) -> None:
        if grown:
            grown.pop()
        if shrunk is not None and taken is not None:
            shrunk.append(taken)
        self.redo = redo

    def forget(self, floor: int) -> None:
        """Drop the groups that begin at or before a point in time."""
        self.undo[:] = [group for group in self.undo if group[0].seq > floor]
        self.redo[:] = [group for group in self.redo if group[0].seq > floor]


def images_before(commits: Sequence[Commit]) -> Images:
    """The touched nodes as they were before the first of some commits."""
    images: dict[str, Image | None] = {}
    for commit in reversed(commits):
        images.update(commit.before)
    return images


def revert(tree: Tree, history: History, commits: Sequence[Commit]) -> None:
    """Bring the touched nodes back to what they were before the commits."""
    images = images_before(commits)
    since = history.images_at(commits[-1].seq)
    changed = [key for key in images if key in since and not is_still(since[key], tree.nodes.get(key))]
    blocked = changed or _unfit(tree, images)
    if blocked:
        raise Conflict(
            f"Others have changed or built on {', '.join(blocked[:5])} since, so this change cannot be "
            "taken back alone. Read those nodes and change them directly.",
            reason="undo_blocked",
            changedNodeIds=blocked[:50],
        )
    tree.apply(_fitted(tree, images))


def _fitted(tree: Tree, images: Images) -> Images:
    """The images among the nodes that are not touched: no rank is taken twice, and who shares a payload goes on
    sharing it."""
    fitted = with_free_ranks(tree, images)
    for node_id, image in images.items():
        if image is not None and image.group is not None:
            fitted[node_id] = _shared(tree, fitted, node_id, fitted[node_id] or image)
    return fitted


def with_free_ranks(tree: Tree, images: Images) -> dict[str, Image | None]:
    """The images with no rank that a node has which is not touched."""
    fitted = dict(images)
    wanted: dict[str, list[Rank]] = {}
    for image in images.values():
        if image is not None and image.parent_id in tree.nodes:
            wanted.setdefault(image.parent_id, []).append(image.rank)
    standing = {
        parent_id: {one.rank for one in (tree.nodes[parent_id].children or {}).values() if one.id not in images}
        for parent_id in wanted
    }
    orders: dict[str, list[Rank]] = {}
    for node_id, image in images.items():
        if image is not None and image.parent_id in standing and image.rank in standing[image.parent_id]:
            above = image.parent_id
            if above not in orders:
                orders[above] = sorted({*standing[above], *wanted[above]})
            fitted[node_id] = image._replace(rank=_rank_before(orders[above], image.rank))
    return fitted


def _shared(tree: Tree, fitted: dict[str, Image | None], node_id: str, image: Image) -> Image:
    others = [tree.nodes[key] for key in tree.groups.get(image.group or "", ()) if key not in fitted]
    if not others:
        return image
    if node_id not in tree.nodes:
        return image._replace(payload=others[0].payload)
    for other in others:
        fitted[other.id] = other.image()._replace(payload=image.payload)
    return image


def _rank_before(order: list[Rank], rank: Rank) -> Rank:
    """A free rank just before one that is taken; from then on it is taken as well."""
    at = bisect_left(order, rank)
    free = between(order[at - 1] if at else rank - 2, rank)
    order.insert(at, free)
    return free


def _unfit(tree: Tree, images: Images) -> list[str]:
    """The nodes that would lose their parent, or end up below themselves."""
    unfit: list[str] = []
    known: dict[str, bool] = {}
    for node_id, image in images.items():
        node = tree.nodes.get(node_id)
        if image is None:
            children = (node.children or ()) if node is not None else ()
            unfit.extend(child for child in children if child not in images)
        elif image.parent_id is not None and _is_lost(tree, images, node_id, known):
            unfit.append(node_id)
    return unfit


def _is_lost(tree: Tree, images: Images, node_id: str, known: dict[str, bool]) -> bool:
    """Whether the way up from a node does not end at the root; each node on it is asked once."""
    trail: dict[str, None] = {}
    at: str | None = node_id
    while at is not None and at not in known and at not in trail:
        trail[at] = None
        state = images[at] if at in images else tree.nodes.get(at)
        if state is None:
            known[at] = True
        else:
            at = state.parent_id
    lost = at is not None and known.get(at, True)
    known.update(dict.fromkeys(trail, lost))
    return lost
