"""What happened to the tree: commits, and the questions that before-images answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from toolgrove.tree.node import Image
from toolgrove.tree.tree import Tree

Images = Mapping[str, Image | None]
Bookmark = tuple[str, str, str]
"""Agent, label, node id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One change of the tree: what it touched, as it was before, whose child lists it changed, and the
    bookmarks that fell or came back with nodes."""

    seq: int
    agent: str
    tool: str
    before: dict[str, Image | None]
    parents: frozenset[str]
    dropped: tuple[Bookmark, ...] = ()
    returned: tuple[Bookmark, ...] = ()


def changed_parents(tree: Tree, before: Images) -> frozenset[str]:
    """The nodes whose child list differs from before."""
    parents: set[str | None] = set()
    for node_id, image in before.items():
        node = tree.nodes.get(node_id)
        now = None if node is None or node.parent is None else (node.parent.id, node.rank)
        was = None if image is None else (image.parent_id, image.rank)
        if now != was:
            parents.update(place[0] for place in (now, was) if place is not None)
    return frozenset(parent for parent in parents if parent is not None)


class History:
    """The commits still remembered, oldest first."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.floor = 0
        self._commits: list[Commit] = []
        self._seqs: list[int] = []

    def __len__(self) -> int:
        return len(self._commits)

    def append(self, commit: Commit) -> None:
        """Remember one more."""
        self._commits.append(commit)
        self._seqs.append(commit.seq)

    def drop(self, commit: Commit) -> None:
        """Forget the latest commit, which never became durable."""
        if self._commits and self._commits[-1] is commit:
            self._commits.pop()
            self._seqs.pop()

    @property
    def latest(self) -> int:
        """When the last remembered commit happened."""
        return self._seqs[-1] if self._seqs else self.floor

    def since(self, seq: int) -> list[Commit]:
        """The commits after a point in time."""
        if self._seqs and self._seqs[-1] <= seq:
            return []
        return self._commits[bisect_right(self._seqs, seq) :]

    def images_at(self, seq: int) -> dict[str, Image | None]:
        """What every node touched since then was at that time."""
        images: dict[str, Image | None] = {}
        for commit in reversed(self.since(seq)):
            images.update(commit.before)
        return images

    @property
    def is_full(self) -> bool:
        """Whether it is time to forget; a tenth of slack makes dropping from the front rare."""
        return len(self._commits) > self.keep + self.keep // 10

    def trim(self, pinned: int) -> None:
        """Forget the oldest commits up to a point in time."""
        surplus = min(len(self._commits) - self.keep, bisect_right(self._seqs, pinned))
        if surplus > self.keep // 10:
            self.floor = self._seqs[surplus - 1]
            del self._commits[:surplus], self._seqs[:surplus]
