"""What happened to the tree: commits, the questions that before-images answer, and which changes led to where it is."""

from __future__ import annotations

import re
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from toolgrove.tree.node import Image
from toolgrove.tree.tree import Tree

Images = Mapping[str, Image | None]
_ID = re.compile(r"([0-9a-f]{6,32})-(0|[1-9][0-9]{0,17})")
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


_TERMS = 100_000
"""How many terms are remembered, whatever the history holds: replicas that take turns begin one each time."""


def new_term() -> str:
    """A name under which one workspace counts its changes, and no other ever does."""
    return secrets.token_hex(6)


def change_id(term: str, number: int) -> str:
    """The identity of a change: the term of whoever made it, and its number within the workspace."""
    return f"{term}-{number}"


def read_id(text: str) -> tuple[str, int] | None:
    """The term and the number in the identity of a change; None for any other text."""
    found = _ID.fullmatch(text)
    return None if found is None else (found[1], int(found[2]))


class Lineage:
    """Which changes led to the present one, as far back as is remembered.

    A change is named by a term and a number. The number says where it stands; several processes may count the same one.
    The term is a random name, which a process draws anew whenever its own changes stop following each other: when it
    opens the store, when it takes over what another process did, and when one of its changes was refused. So a name is
    given to one change only, and within a term each change rests on all before it. That makes the whole lineage a short
    list of terms, each with the number at which it ended.
    """

    def __init__(self, start: str) -> None:
        """`start` is the identity of the oldest change that is remembered."""
        read = read_id(start)
        if read is None:
            raise ValueError(f"{start!r} does not name a change")
        self._terms, self._ends = [read[0]], [read[1]]
        self.last = start
        """The newest change."""
        self.start = read[1]
        """The oldest number that it can tell of."""

    def twin(self) -> Lineage:
        """One that goes on apart from this."""
        twin = Lineage(self.last)
        twin._terms, twin._ends, twin.start = self._terms.copy(), self._ends.copy(), self.start
        return twin

    def append(self, identity: str) -> None:
        """Add the change that came next."""
        term, number = identity.split("-")
        if term == self._terms[-1]:
            self._ends[-1] = int(number)
        else:
            if len(self._terms) == _TERMS:
                self.forget_to(self._ends[_TERMS // 10])
            self._terms.append(term)
            self._ends.append(int(number))
        self.last = identity

    def drop_to(self, identity: str) -> None:
        """Forget what came after a change, which is one of those remembered."""
        term, number = identity.split("-")
        while self._terms[-1] != term:
            self._terms.pop()
            self._ends.pop()
        self._ends[-1] = int(number)
        self.last = identity

    def forget_to(self, number: int) -> None:
        """Forget what lies before a number, as the history does."""
        at = bisect_left(self._ends, number)
        if at < len(self._ends):
            del self._terms[:at], self._ends[:at]
            self.start = max(self.start, number)

    def term_at(self, number: int) -> str | None:
        """Under which term a number was counted; None if it was not, or too long ago."""
        if not self.start <= number <= self._ends[-1]:
            return None
        return self._terms[bisect_left(self._ends, number)]


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
