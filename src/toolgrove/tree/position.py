"""Places in pre-order: how a page token finds its way back into a tree that has changed since."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from toolgrove.tree.node import Node
from toolgrove.tree.rank import Rank

_rank = attrgetter("rank")


def position(node: Node, root: Node) -> list[Rank]:
    """The ranks that lead from `root` down to a node."""
    ranks: list[Rank] = []
    at: Node | None = node
    while at is not root and at is not None:
        ranks.append(at.rank)
        at = at.parent
    ranks.reverse()
    return ranks


def resume(root: Node, ranks: Sequence[Rank]) -> tuple[list[Node], list[list[Node]]]:
    """The nodes still standing on the way to a position, and the children of each that come after it."""
    trail, rest = [root], []
    for rank in ranks:
        children = list(trail[-1].children.values()) if trail[-1].children else []
        later = bisect_right(children, rank, key=_rank)
        rest.append(children[later:])
        if later == 0 or children[later - 1].rank != rank:
            return trail, rest
        trail.append(children[later - 1])
    rest.append(list(trail[-1].children.values()) if trail[-1].children else [])
    return trail, rest
