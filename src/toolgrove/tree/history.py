"""What happened to the tree: commits, and the questions that before-images answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from toolgrove.tree.node import Image
from toolgrove.tree.tree import Tree

Images = Mapping[str, Image | None]
Bookmark = tuple[str, str, str]
"""Agent, label, node id."""


class Commit(NamedTuple):
    """One change of the tree: what it touched, as it was before, whose child lists it changed, the
    bookmarks that fell or came back with nodes, and when that was, if it is known."""

    seq: int
    agent: str
    tool: str
    before: dict[str, Image | None]
    parents: frozenset[str]
    dropped: tuple[Bookmark, ...] = ()
    returned: tuple[Bookmark, ...] = ()
    at: float | None = None


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
    """The commits still remembered, oldest first.

    Those up to `floor` are forgotten, save what snapshots need to be returned to: `folds` holds, for each of
    them, the change from its moment to the next one as one commit.
    """

    def __init__(self, keep: int, *, floor: int = 0, folds: Mapping[int, Commit] | None = None) -> None:
        self.keep = keep
        self.floor = floor
        self.folds: dict[int, Commit] = dict(folds or {})
        self._commits: list[Commit] = []
        self._seqs: list[int] = []

    def __len__(self) -> int:
        return len(self._commits)

    def twin(self) -> History:
        """A history that starts out as this one."""
        twin = History(self.keep, floor=self.floor, folds=self.folds)
        twin._commits, twin._seqs = self._commits.copy(), self._seqs.copy()
        return twin

    def size_since(self, seq: int) -> int:
        """How many nodes the commits after a moment touched, each counted once per commit."""
        return sum(len(commit.before) for commit in self.back_to(seq))

    def append(self, commit: Commit) -> None:
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

    def back_to(self, seq: int) -> list[Commit]:
        """The commits after the moment of a snapshot, those long past folded into few."""
        if seq >= self.floor:
            return self.since(seq)
        return [*(fold for moment, fold in self.folds.items() if moment >= seq), *self._commits]

    def images_at(self, seq: int) -> dict[str, Image | None]:
        """What every node touched since then was at that time."""
        images: dict[str, Image | None] = {}
        for commit in reversed(self.back_to(seq)):
            images.update(commit.before)
        return images

    @property
    def is_full(self) -> bool:
        """Whether it is time to forget; a tenth of slack makes dropping from the front rare."""
        return len(self._commits) > self.keep + self.keep // 10

    def forget_to(self, floor: int, folds: Mapping[int, Commit]) -> None:
        """Forget as much as another who has the same history did."""
        gone = bisect_right(self._seqs, floor)
        del self._commits[:gone], self._seqs[:gone]
        self.floor, self.folds = floor, dict(folds)

    def trim(self, last: int, moments: Collection[int]) -> Callable[[], None]:
        """Forget the oldest commits, none after `last`, but not the way back to some moments; returns a function that
        remembers them again."""
        surplus = min(len(self._commits) - self.keep, bisect_right(self._seqs, last))
        if surplus <= self.keep // 10:
            surplus = 0
        commits, seqs, floor, folds = self._commits[:surplus], self._seqs[:surplus], self.floor, self.folds
        if surplus:
            self.floor = seqs[-1]
            self.folds = folded([*folds.items(), *((commit.seq - 1, commit) for commit in commits)], moments)
            del self._commits[:surplus], self._seqs[:surplus]

        def restore() -> None:
            self._commits[:0], self._seqs[:0], self.floor, self.folds = commits, seqs, floor, folds

        return restore


def folded(commits: Iterable[tuple[int, Commit]], moments: Collection[int]) -> dict[int, Commit]:
    """One commit for each span between moments; given with each commit, oldest first, where its own span begins."""
    order = sorted(moments)
    spans: dict[int, list[Commit]] = {}
    for start, commit in commits:
        at = bisect_right(order, start)
        if at:
            spans.setdefault(order[at - 1], []).append(commit)
    return {moment: _folded(span) for moment, span in spans.items()}


def _folded(span: Sequence[Commit]) -> Commit:
    before: dict[str, Image | None] = {}
    for commit in reversed(span):
        before.update(commit.before)
    dropped = tuple(bookmark for commit in span for bookmark in commit.dropped)
    return Commit(seq=span[-1].seq, agent="", tool="", before=before, parents=frozenset(), dropped=dropped)
