"""A workspace: one tree with its history, and what agents keep beside it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolgrove.errors import BatchTooLarge, Conflict, Forbidden, StaleVersion, Unnamed
from toolgrove.tree.boundary import outside
from toolgrove.tree.diff import Diff, diff_states
from toolgrove.tree.footprint import Footprint
from toolgrove.tree.history import Commit, History, Images, changed_parents
from toolgrove.tree.page_token import PageTokens
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.rules import Ruleset
from toolgrove.tree.tree import Tree
from toolgrove.tree.undo import revert
from toolgrove.tree.view import View, ViewChange
from toolgrove.types import Caller

CURRENT = "current"
_NAMED_IDS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one call may cover."""

    node_ids: int = 200
    patch: int = 100
    update_nodes: int = 1_000
    import_nodes: int = 100_000
    copy_nodes: int = 100_000
    expand_nodes: int = 100_000
    view_nodes: int = 10_000
    tags: int = 50
    bookmarks: int = 1_000
    snapshots: int = 100
    history: int = 10_000

    def check(self, argument: str, count: int, limit: int, hint: str | None = None) -> None:
        """Refuse a batch that is larger than configured."""
        if count > limit:
            raise BatchTooLarge(argument=argument, count=count, limit=limit, hint=hint)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
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

    snapshot: Snapshot
    dropped: bool = False


Change = ViewChange | BookmarkChange | SnapshotChange


@dataclass(slots=True)
class Undoable:
    """What one agent can take back, and bring back again; each entry is one call's commits."""

    undo: list[tuple[Commit, ...]] = field(default_factory=list)
    redo: list[tuple[Commit, ...]] = field(default_factory=list)


class Workspace:
    """The state that the tree tools work on; one writer at a time."""

    def __init__(
        self,
        *,
        types: PayloadTypes | None = None,
        rulesets: Mapping[str, Ruleset] | None = None,
        limits: Limits | None = None,
        secret: bytes | None = None,
    ) -> None:
        self.tree = Tree()
        self.types = types or PayloadTypes()
        self.rulesets = dict(rulesets or {})
        self.limits = limits or Limits()
        self.history = History(self.limits.history)
        self.tokens = PageTokens(secret or secrets.token_bytes(32))
        self.snapshots: dict[str, Snapshot] = {}
        self.bookmarks: dict[str, dict[str, str]] = {}
        self.seq = 0
        self.tree_seq = 0
        self._views: dict[tuple[str, str], View] = {}
        self._undoable: dict[str, Undoable] = {}
        self._snapshot_serial = 0
        # Another workspace's tokens must never look current here.
        self._epoch = secrets.token_hex(3)

    # Sessions and versions ----------------------------------------------------------------------

    def view(self, caller: Caller) -> View:
        """The view of the caller's session; other agents cannot reach it."""
        key = (caller.agent, caller.session)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = View(session=caller.session, seq=0)
        return view

    def version(self, caller: Caller) -> str:
        """The token that is current for this caller."""
        return self.version_at(max(self.tree_seq, self.view(caller).seq))

    def version_at(self, seq: int) -> str:
        """The token of a moment."""
        return f"{self._epoch}-{seq}"

    def version_after(self, caller: Caller, changes: Sequence[Change]) -> str:
        """The token that will be current once the changes are applied."""
        return self.version_at(self.seq + 1) if changes else self.version(caller)

    def seq_of(self, token: str | None) -> int | None:
        """The moment a token stands for; None if this workspace never issued it."""
        epoch, _, number = (token or "").partition("-")
        if epoch != self._epoch or not number.isascii() or not number.isdigit() or len(number) > 18:
            return None
        seq = int(number)
        return seq if seq <= self.seq and number == str(seq) else None

    def check_version(self, caller: Caller, token: str | None, footprint: Footprint) -> None:
        """Refuse a missing token, or one whose ground has changed."""
        seq = self.seq_of(token)
        if seq is None:
            raise self._stale(caller, token, [])
        view_changed = self.view(caller).seq > seq
        if caller.concurrency == "tree":
            if self.tree_seq > seq or view_changed:
                raise self._stale(caller, token, self._touched_since(seq))
            return
        if footprint.view and view_changed:
            raise self._stale(caller, token, [])
        if seq < self.history.floor and self.tree_seq > seq:
            raise self._stale(caller, token, [])
        hit = footprint.disturbed_by(self.history.since(seq))
        if hit:
            raise self._stale(caller, token, hit)

    def _touched_since(self, seq: int) -> list[str]:
        touched: dict[str, None] = {}
        for commit in self.history.since(seq):
            touched.update(dict.fromkeys(commit.before))
        return list(touched)

    def _stale(self, caller: Caller, token: str | None, changed: Sequence[str]) -> StaleVersion:
        return StaleVersion(given=token, latest=self.version(caller), changed=changed[:_NAMED_IDS], count=len(changed))

    # Commits --------------------------------------------------------------------------------------

    def commit(self, caller: Caller, tool: str) -> Commit | None:
        """Close the open transaction; None if nothing changed in the end."""
        self.check_boundary(caller)
        before = self.tree.take()
        if not before:
            return None
        self.seq += 1
        self.tree_seq = self.seq
        commit = Commit(
            seq=self.seq,
            agent=caller.agent,
            tool=tool,
            before=before,
            parents=changed_parents(self.tree, before),
            bookmarks=self._drop_bookmarks(before),
        )
        self.history.append(commit)
        return commit

    def check_boundary(self, caller: Caller) -> None:
        """Refuse an open transaction that reaches outside the caller's write root."""
        if caller.write_root is None:
            return
        stray = outside(self.tree, self.tree.before, caller.write_root)
        if stray is not None:
            raise Forbidden(
                f"You may write only at and below {caller.write_root!r}; {stray!r} lies outside. Nothing was changed.",
                reason="write_root",
                writeRoot=caller.write_root,
                nodeId=stray,
            )

    def remember(self, caller: Caller, commits: tuple[Commit, ...]) -> None:
        """Let the agent take these commits back as one."""
        if not commits:
            return
        undoable = self._undoable.setdefault(caller.agent, Undoable())
        undoable.undo.append(commits)
        undoable.redo.clear()
        del undoable.undo[: -self.limits.history]

    def trim(self) -> None:
        """Forget history that nothing needs any more."""
        self.history.trim(min((snapshot.seq for snapshot in self.snapshots.values()), default=None))

    def withdraw(self, commits: Sequence[Commit]) -> None:
        """Take back commits that could not be made durable."""
        for commit in reversed(commits):
            self.tree.apply(commit.before)
            self.tree.take()
            self._return_bookmarks([commit])
            self.history.drop(commit)
        self.tree_seq = self.history.latest

    def _drop_bookmarks(self, before: Images) -> tuple[tuple[str, str, str], ...]:
        gone = {node_id for node_id in before if node_id not in self.tree.nodes}
        if not gone or not self.bookmarks:
            return ()
        dropped = [
            (agent, label, node_id)
            for agent, labels in self.bookmarks.items()
            for label, node_id in labels.items()
            if node_id in gone
        ]
        for agent, label, _ in dropped:
            del self.bookmarks[agent][label]
        return tuple(dropped)

    def _return_bookmarks(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            for agent, label, node_id in commit.bookmarks:
                if node_id in self.tree.nodes:
                    self.bookmarks.setdefault(agent, {}).setdefault(label, node_id)

    def apply(self, caller: Caller, changes: Sequence[Change]) -> None:
        """Carry out what a call does beside the tree; only the caller's own version moves."""
        if not changes:
            return
        self.seq += 1
        view = self.view(caller)
        view.seq = self.seq
        for change in changes:
            match change:
                case ViewChange():
                    change.apply(view)
                case BookmarkChange(agent=agent, label=label, node_id=None):
                    self.bookmarks[agent].pop(label, None)
                case BookmarkChange(agent=agent, label=label, node_id=str(node_id)):
                    self.bookmarks.setdefault(agent, {})[label] = node_id
                case SnapshotChange(snapshot=snapshot, dropped=True):
                    self.snapshots.pop(snapshot.id, None)
                case SnapshotChange(snapshot=snapshot):
                    self._snapshot_serial += 1
                    self.snapshots[snapshot.id] = snapshot

    # Undo, snapshots, diffs -----------------------------------------------------------------------

    def undo(self, caller: Caller, *, again: bool) -> tuple[Commit, ...]:
        """Take back the caller's last change, or the last taking back."""
        undoable = self._undoable.get(caller.agent, Undoable())
        stack = undoable.redo if again else undoable.undo
        if not stack:
            raise Conflict(
                "There is nothing to redo; undo comes first." if again else "You have changed nothing to undo.",
                reason="nothing_to_redo" if again else "nothing_to_undo",
            )
        revert(self.tree, self.history, stack[-1])
        return stack[-1]

    def undone(self, caller: Caller, commit: Commit | None, reverted: tuple[Commit, ...], *, again: bool) -> None:
        """Note that a change was taken back (or brought back) by a commit."""
        undoable = self._undoable[caller.agent]
        source, target = (undoable.redo, undoable.undo) if again else (undoable.undo, undoable.redo)
        source.pop()
        if commit is not None:
            target.append((commit,))
            self._return_bookmarks(reverted)

    def snapshot(self, name: str) -> Snapshot:
        """A snapshot by id."""
        if name not in self.snapshots:
            raise Unnamed(kind="snapshot", name=name, known=list(self.snapshots), where="snapshot_list")
        return self.snapshots[name]

    def next_snapshot_id(self) -> str:
        """The id that the next snapshot gets."""
        return f"s{self._snapshot_serial + 1}"

    def restore(self, snapshot: Snapshot) -> None:
        """Bring the tree back to a snapshot, inside the open transaction."""
        self.tree.apply(self.history.images_at(snapshot.seq))

    def restored(self, snapshot: Snapshot) -> None:
        """Bring back the bookmarks that fell with nodes since then."""
        self._return_bookmarks(self.history.since(snapshot.seq))

    def diff(self, old: str, new: str) -> Diff:
        """The difference of two snapshots; `current` is the live tree."""
        first, second = self._moment(old), self._moment(new)
        return diff_states(self.tree, self.history.images_at(first), self.history.images_at(second))

    def pending(self) -> Diff:
        """What the open transaction has changed so far."""
        return diff_states(self.tree, self.tree.before, {})

    def _moment(self, name: str) -> int:
        return self.seq if name == CURRENT else self.snapshot(name).seq
