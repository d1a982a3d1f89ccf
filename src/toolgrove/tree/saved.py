"""A workspace as a store gives it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolgrove.notation.half_characters import has_half, holds_half
from toolgrove.tree.effects import Mark, TreeSnapshot
from toolgrove.tree.history import Commit, Lineage
from toolgrove.tree.node import Image, Node
from toolgrove.tree.undo import Move
from toolgrove.tree.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class PastCall:
    """A call of the past that can still be looked up or taken back."""

    agent: str
    move: Move
    commits: tuple[Commit, ...]
    delegated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedWorkspace:
    """Everything a workspace knows; the calls stand oldest first."""

    lineage: Lineage
    secret: bytes
    revision: int = 0
    mark: Mark = field(default_factory=Mark)
    nodes: Mapping[str, Image] = field(default_factory=dict)
    past: Sequence[PastCall] = ()
    folds: Mapping[int, Commit] = field(default_factory=dict)
    views: Mapping[tuple[str, str], View] = field(default_factory=dict)
    bookmarks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    snapshots: Sequence[TreeSnapshot] = ()

    def half_texts(self) -> list[str]:
        """Where a text holds half a character, in words."""
        labels = [(agent, label) for agent, own in self.bookmarks.items() for label in own]
        return half_texts(self.nodes.items(), self.snapshots, labels)


def half_texts(
    nodes: Iterable[tuple[str, Node | Image]], snapshots: Iterable[TreeSnapshot], labels: Iterable[tuple[str, str]]
) -> list[str]:
    """The nodes, snapshots and bookmarks whose texts hold half a character, which an older version took in."""
    found = [f"node {key!r}" for key, one in nodes if holds_half([key, one.type, one.payload, list(one.tags)])]
    found += [f"snapshot {one.label!r}" for one in snapshots if has_half(one.label)]
    return found + [f"bookmark {label!r} of {agent}" for agent, label in labels if has_half(label)]
