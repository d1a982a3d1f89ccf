"""What one call does to a workspace, as plain data that a store can keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from toolgrove.tree.history import Commit
from toolgrove.tree.node import Image
from toolgrove.tree.undo import Move
from toolgrove.tree.view import View, ViewChange


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeSnapshot:
    """A remembered moment; the journal holds what it takes to return to it."""

    id: str
    label: str
    agent: str
    seq: int
    created: float
    nodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BookmarkChange:
    """A label set on a node, or taken away where there is no node."""

    agent: str
    label: str
    node_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotChange:
    """A snapshot taken, or dropped."""

    snapshot: TreeSnapshot
    dropped: bool = False


Change = ViewChange | BookmarkChange | SnapshotChange


class Mark(NamedTuple):
    """Where a workspace stands: how far its history reaches, and the numbers it never gives out twice."""

    tree_seq: int = 0
    floor: int = 0
    serial: int = 0
    group_serial: int = 0
    snapshot_serial: int = 0
    nodes: int = 1


class Effects(NamedTuple):
    """What a call changed: commits of the tree, and changes beside it.

    They lead from the revision `base` to `revision`. `id` names this change and no other, `parent` the one that it
    was made on: a store whose newest change is not the parent must refuse them.
    `after` is every touched node as it is now, `view` the caller's view without its flags, `folds` what is
    left of the history before the mark's floor, told when the floor moves. What a delegated run did cannot be
    taken back once it has ended.
    """

    agent: str
    session: str
    base: int
    revision: int
    parent: str
    id: str
    mark: Mark
    commits: tuple[Commit, ...] = ()
    after: Mapping[str, Image | None] = MappingProxyType({})
    changes: tuple[Change, ...] = ()
    view: View | None = None
    move: Move = "do"
    folds: Mapping[int, Commit] | None = None
    delegated: bool = False


class Recorded(NamedTuple):
    """Effects that show in the workspace, and the way back should the journal refuse them."""

    effects: Effects
    take_back: Callable[[], None]
