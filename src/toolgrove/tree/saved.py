"""A workspace as a store gives it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolgrove.tree.effects import Mark, TreeSnapshot
from toolgrove.tree.history import Commit
from toolgrove.tree.node import Image
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

    epoch: str
    secret: bytes
    revision: int = 0
    mark: Mark = field(default_factory=Mark)
    nodes: Mapping[str, Image] = field(default_factory=dict)
    past: Sequence[PastCall] = ()
    folds: Mapping[int, Commit] = field(default_factory=dict)
    views: Mapping[tuple[str, str], View] = field(default_factory=dict)
    bookmarks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    snapshots: Sequence[TreeSnapshot] = ()
