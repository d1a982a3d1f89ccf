"""Taking changes back: what an agent did last, as long as nobody has built on it since."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.errors import Conflict
from toolgrove.tree.history import Commit, History, Images
from toolgrove.tree.node import Image
from toolgrove.tree.tree import Tree, is_still


def images_before(commits: Sequence[Commit]) -> Images:
    """The touched nodes as they were before the first of some commits."""
    images: dict[str, Image | None] = {}
    for commit in reversed(commits):
        images.update(commit.before)
    return images


def revert(tree: Tree, history: History, commits: Sequence[Commit]) -> None:
    """Bring the touched nodes back to what they were before the commits."""
    images = images_before(commits)
    last = commits[-1].seq
    if last < history.floor:
        raise Conflict("That change is too old to be taken back; use a snapshot for longer spans.")
    since = history.images_at(last)
    changed = [key for key in images if key in since and not is_still(since[key], tree.nodes.get(key))]
    blocked = changed or _unfit(tree, images)
    if blocked:
        raise Conflict(
            f"Others have changed or built on {', '.join(blocked[:5])} since, so this change cannot be "
            "taken back alone. Read those nodes and change them directly.",
            reason="undo_blocked",
            changedNodeIds=blocked[:50],
        )
    tree.apply(images)


def _unfit(tree: Tree, images: Images) -> list[str]:
    """The nodes that would lose their parent, or end up below themselves."""
    unfit: list[str] = []
    for node_id, image in images.items():
        node = tree.nodes.get(node_id)
        if image is None:
            children = (node.children or ()) if node is not None else ()
            unfit.extend(child for child in children if child not in images)
        elif image.parent_id is not None and _is_lost(tree, images, node_id):
            unfit.append(node_id)
    return unfit


def _is_lost(tree: Tree, images: Images, node_id: str) -> bool:
    at: str | None = node_id
    seen: set[str] = set()
    while at is not None:
        if at in seen:
            return True
        seen.add(at)
        if at in images:
            image = images[at]
            if image is None:
                return True
            at = image.parent_id
        else:
            node = tree.nodes.get(at)
            if node is None:
                return True
            at = node.parent_id
    return False
