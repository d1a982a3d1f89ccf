"""A workspace: one tree with its history, and what agents keep beside it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

from toolgrove.errors import BatchTooLarge, Conflict, NotFound, OutsideWriteRoot, StaleVersion, Unnamed, VersionLost
from toolgrove.tree.account import Account, account
from toolgrove.tree.bookmarks import Bookmarks
from toolgrove.tree.boundary import outside
from toolgrove.tree.branch import branch_at
from toolgrove.tree.delegated import DelegatedSession
from toolgrove.tree.diff import Diff, diff_states
from toolgrove.tree.effects import BookmarkChange, Change, Effects, Mark, Recorded, SnapshotChange, TreeSnapshot
from toolgrove.tree.footprint import Footprint
from toolgrove.tree.history import Commit, History, Lineage, change_id, changed_parents, new_term, read_id
from toolgrove.tree.moment import Moment
from toolgrove.tree.ordered_results import OrderedResults
from toolgrove.tree.page_token import PageTokens
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.rules import Ruleset
from toolgrove.tree.saved import SavedWorkspace, half_texts
from toolgrove.tree.tree import Tree
from toolgrove.tree.undo import Move, UndoStacks, revert
from toolgrove.tree.view import View, ViewChange
from toolgrove.types import Caller

CURRENT = "current"
_NAMED_IDS = 50
Undo = Callable[[], None]
Point = Callable[[str, str | None], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one call may cover."""

    node_ids: int = 200
    patch: int = 100
    update_nodes: int = 1_000
    import_nodes: int = 100_000
    copy_nodes: int = 100_000
    change_nodes: int = 100_000
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
        self.ordered = OrderedResults()
        self.snapshots: dict[str, TreeSnapshot] = {}
        self.bookmarks = Bookmarks()
        self.seq = 0
        self.tree_seq = 0
        self._views: dict[tuple[str, str], View] = {}
        self._undo_stacks: dict[str, UndoStacks] = {}
        self._delegated: dict[str, DelegatedSession] = {}
        self._snapshot_serial = 0
        self._revision = 0
        self._told_floor = 0
        # Another workspace's tokens must never look current here.
        self._lineage = Lineage(change_id(new_term(), 0))
        self._term: str | None = None

    def resume(self, saved: SavedWorkspace) -> None:
        """Go on where a workspace left off: the same tree, history, views and tokens."""
        mark = saved.mark
        serial, group_serial = self.tree.serials  # what was given out here is never given out again
        self.tree = Tree.grown(
            saved.nodes, serial=max(serial, mark.serial), group_serial=max(group_serial, mark.group_serial)
        )
        self.tokens = PageTokens(saved.secret)
        self.seq = self._revision = saved.revision
        self.tree_seq = mark.tree_seq
        self._lineage, self._term = saved.lineage, None
        self._snapshot_serial = max(self._snapshot_serial, mark.snapshot_serial)
        self.snapshots = {snapshot.id: snapshot for snapshot in saved.snapshots}
        self.bookmarks = Bookmarks(saved.bookmarks)
        self._views = dict(saved.views)
        self.history = History(self.limits.history, floor=mark.floor, folds=saved.folds)
        self._told_floor = mark.floor
        self._undo_stacks = {}
        for delegated in self._delegated.values():
            delegated.undo_stacks = UndoStacks()
        for past in saved.past:
            remembered = [commit for commit in past.commits if commit.seq > mark.floor]
            for commit in remembered:
                self.history.append(commit)
            if len(remembered) == len(past.commits) and not past.delegated:
                self._undo_stacks.setdefault(past.agent, UndoStacks()).shift(past.move, past.commits)

    @property
    def revision(self) -> int:
        """Where the journal stands when it has all that was done here."""
        return self._revision

    @property
    def newest(self) -> str:
        """The identity of the change that led to where the workspace stands."""
        return self._lineage.last

    def follow(self, effects: Effects) -> None:
        """Take over what a call did in another process; it rests on the change that is the newest here."""
        if effects.parent != self.newest:
            raise ValueError(f"{effects.id} rests on {effects.parent}, and {self.newest} stands here")
        mark, agent = effects.mark, effects.agent
        self._lineage.append(effects.id)
        self._term = None
        self.tree.follow(effects.after, serial=mark.serial, group_serial=mark.group_serial)
        for commit in effects.commits:
            self.bookmarks.drop(commit.dropped)
            self.bookmarks.put(commit.returned)
            self.history.append(commit)
        for change in effects.changes:
            self._follow_change(effects, change)
        if effects.view is not None:
            held = self._views.get((agent, effects.session))
            flags = {} if held is None else held.expanded
            self._views[agent, effects.session] = replace(effects.view, expanded=flags)
        if not effects.delegated:
            self._undo_stacks.setdefault(agent, UndoStacks()).shift(effects.move, effects.commits)
        if effects.folds is not None:
            self.history.forget_to(mark.floor, effects.folds)
            self._lineage.forget_to(mark.floor)
            for undo_stacks in self._undo_stacks.values():
                undo_stacks.forget(mark.floor)
        self._told_floor = self.history.floor
        self.seq = self._revision = effects.revision
        self.tree_seq = mark.tree_seq
        self._snapshot_serial = mark.snapshot_serial

    def _follow_change(self, effects: Effects, change: Change) -> None:
        match change:
            case ViewChange():
                place = (effects.agent, effects.session)
                change.apply(self._views.setdefault(place, View(session=effects.session)))
            case BookmarkChange(agent=agent, label=label, node_id=node_id):
                self.bookmarks.point(agent, label, node_id)
            case SnapshotChange(snapshot=snapshot, dropped=dropped):
                self.snapshots = {key: one for key, one in self.snapshots.items() if key != snapshot.id}
                if not dropped:
                    self.snapshots[snapshot.id] = snapshot

    def twin(self, caller: Caller) -> Workspace:
        """A workspace for one call that starts out as this one: the call works on it in a thread while others go on
        here. It has the same tree until a call that changes nodes gives it a fork."""
        twin = copy(self)
        twin.history, twin.bookmarks = self.history.twin(), self.bookmarks.twin()
        twin._lineage, twin._term = self._lineage.twin(), None
        twin._views, twin._undo_stacks, twin._delegated = (
            dict(self._views),
            dict(self._undo_stacks),
            dict(self._delegated),
        )
        place = (caller.agent, caller.session)
        if place in twin._views:
            twin._views[place] = twin._views[place].twin()
        if caller.agent in twin._undo_stacks:
            twin._undo_stacks[caller.agent] = twin._undo_stacks[caller.agent].twin()
        if caller.session in twin._delegated:
            twin._delegated[caller.session] = twin._delegated[caller.session].twin()
        return twin

    def become(self, twin: Workspace) -> None:
        """Take over what a call did to its twin; meanwhile nothing has changed here, save which runs there are."""
        running = {session: twin._delegated.get(session, one) for session, one in self._delegated.items()}
        self.__dict__.update(twin.__dict__)
        self._delegated = running

    def half_texts(self) -> list[str]:
        """Where a text holds half a character, in words; an older version took such text in."""
        return half_texts(self.tree.nodes.items(), self.snapshots.values(), self.bookmarks.labels())

    # Sessions and versions ----------------------------------------------------------------------

    @contextmanager
    def delegated(self, session: str) -> Iterator[None]:
        """Keep what a delegated run makes beside the tree until it ends; its commits stay."""
        self._delegated[session] = DelegatedSession(session)
        try:
            yield
        finally:
            del self._delegated[session]

    def _delegated_session(self, caller: Caller) -> DelegatedSession | None:
        """Where a delegated caller keeps its own; one whose run has ended keeps nothing."""
        if not caller.is_delegated:
            return None
        return self._delegated.get(caller.session) or DelegatedSession(caller.session)

    def bookmarks_of(self, caller: Caller) -> Mapping[str, str]:
        """The caller's labels with the nodes they stand on."""
        delegated = self._delegated_session(caller)
        if delegated is None:
            return self.bookmarks.of(caller.agent)
        return {label: node_id for label, node_id in delegated.bookmarks.items() if node_id in self.tree.nodes}

    def view(self, caller: Caller) -> View:
        """The view of the caller's session; other agents cannot reach it."""
        delegated = self._delegated_session(caller)
        if delegated is not None:
            return delegated.view
        # Looking makes nothing that stays: a caller may name as many sessions as it likes.
        return self._views.get((caller.agent, caller.session)) or View(session=caller.session)

    def version(self, caller: Caller) -> str:
        """The token that is current for this caller."""
        return self.version_at(max(self.tree_seq, self._view_seq(caller)))

    def _view_seq(self, caller: Caller) -> int:
        if caller.is_delegated:
            return self.view(caller).seq
        view = self._views.get((caller.agent, caller.session))
        return 0 if view is None else view.seq

    def version_at(self, seq: int) -> str:
        """The token that was current at this point in time; one that lies too far back is that of the oldest moment
        that is remembered."""
        if seq == self._revision:  # as nearly always
            return self._lineage.last
        seq = max(seq, self._lineage.start)
        term = self._lineage.term_at(seq)
        if term is None:
            raise ValueError(f"nothing was counted as {seq} here")
        return change_id(term, seq)

    def seq_of(self, token: str | None) -> int | None:
        """The moment a token stands for; None if there is no such moment in the history of this workspace."""
        if token == self._lineage.last:  # as nearly always
            return self._revision
        read = read_id(token or "")
        if read is None:
            return None
        term, seq = read
        return seq if seq < self._oldest or self._lineage.term_at(seq) == term else None

    @property
    def _oldest(self) -> int:
        """The oldest moment that can be told from others that had its number."""
        return max(self._lineage.start, self.history.floor)

    def knows(self, token: str) -> bool:
        """Whether the state that a token names is in this workspace's history; what is no token at all names none."""
        return self.seq_of(token) is not None or read_id(token) is None

    def check_known(self, caller: Caller, token: str) -> None:
        """Refuse a token of a state that is not in this workspace's history."""
        if not self.knows(token):
            raise VersionLost(given=token, latest=self.version(caller))

    def check_version(self, caller: Caller, token: str | None, footprint: Footprint) -> None:
        """Refuse a missing token, or one whose ground has changed."""
        seq = self.seq_of(token)
        if seq is None:
            self.check_known(caller, token or "")
            raise self._stale(caller, token, [])
        view_changed = self._view_seq(caller) > seq
        if seq < self._oldest:  # whose state it was cannot be told any more
            raise self._stale(caller, token, self._touched_since(seq))
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

    def commit(
        self, caller: Caller, tool: str, reviving: Sequence[Commit] = (), at: float | None = None
    ) -> Commit | None:
        """Close the open transaction; None if nothing changed in the end. Bookmarks that fell with the
        commits it revives come back."""
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
            dropped=self.bookmarks.fall(self.tree, before),
            returned=self.bookmarks.revive(self.tree, reviving),
            at=at,
        )
        self.history.append(commit)
        return commit

    def check_boundary(self, caller: Caller) -> None:
        """Refuse an open transaction that reaches outside a write root of the caller's chain."""
        for root in caller.write_roots:
            stray = outside(self.tree, self.tree.before, root.node_id)
            if stray is not None:
                raise OutsideWriteRoot(
                    root=root.node_id, node_id=stray, of=root.agent if root.agent != caller.agent else None
                )

    def record(
        self,
        caller: Caller,
        commits: Sequence[Commit],
        changes: Sequence[Change],
        move: Move = "do",
        pending: Iterable[Effects] = (),
    ) -> Recorded | None:
        """Close a call: carry out what it does beside the tree, and note what its agent can take back.

        `pending` is what was recorded before but may yet be taken back.
        """
        if not commits and not changes and move == "do":
            return None
        untrim = self._trim(pending)
        whole, base, told_floor, parent = tuple(commits), self._revision, self._told_floor, self.newest
        unchange = self._change(caller, changes) if changes else None
        if not changes and not commits:
            self.seq += 1
        delegated = self._delegated_session(caller)
        if delegated is not None:
            undo_stacks = delegated.undo_stacks
        else:
            undo_stacks = self._undo_stacks.setdefault(caller.agent, UndoStacks())
        unshift = undo_stacks.shift(move, whole)
        self._revision = self.seq
        self._term = self._term or new_term()
        self._lineage.append(change_id(self._term, self.seq))
        effects = Effects(
            agent=caller.agent,
            session=caller.session,
            base=base,
            revision=self.seq,
            parent=parent,
            id=self.newest,
            mark=self._mark(),
            commits=whole,
            after={node_id: self.tree.image(node_id) for commit in whole for node_id in commit.before},
            changes=tuple(change for change in changes if delegated is None or isinstance(change, SnapshotChange)),
            view=replace(self.view(caller), expanded={}) if changes and delegated is None else None,
            move=move,
            delegated=delegated is not None,
            folds=self.history.folds if self.history.floor != told_floor else None,
        )
        self._told_floor = self.history.floor
        return Recorded(effects, partial(self._take_back, unshift, unchange, effects, untrim, told_floor))

    def _take_back(
        self, unshift: Undo, unchange: Undo | None, effects: Effects, untrim: Undo | None, floor: int
    ) -> None:
        unshift()
        if unchange is not None:
            unchange()
        self.retract(effects.commits)
        if untrim is not None:
            untrim()
        self._revision, self._told_floor = effects.base, floor
        self._lineage.drop_to(effects.parent)
        self._term = None

    def _mark(self) -> Mark:
        serial, group_serial = self.tree.serials
        return Mark(
            tree_seq=self.tree_seq,
            floor=self.history.floor,
            serial=serial,
            group_serial=group_serial,
            snapshot_serial=self._snapshot_serial,
            nodes=len(self.tree),
        )

    def _trim(self, pending: Iterable[Effects]) -> Callable[[], None] | None:
        """Forget history that nothing needs any more: no snapshot, and nothing that may yet be taken back."""
        if not self.history.is_full:
            return None
        pending = list(pending)
        if not pending:
            delegated = (session.undo_stacks for session in self._delegated.values())
            for undo_stacks in (*self._undo_stacks.values(), *delegated):
                undo_stacks.forget(self.history.floor)
        dropped = [change.snapshot for one in pending for change in one.changes if isinstance(change, SnapshotChange)]
        kept = pending[0].base if pending else self._revision
        if not pending:  # else the floor may yet be taken back
            self._lineage.forget_to(self.history.floor)
        return self.history.trim(kept, {snapshot.seq for snapshot in (*self.snapshots.values(), *dropped)})

    def retract(self, commits: Sequence[Commit]) -> None:
        """Take back the latest commits as if they had never been."""
        for commit in reversed(commits):
            self.tree.apply(commit.before)
            self.tree.take()
            self.bookmarks.drop(commit.returned)
            self.bookmarks.put(commit.dropped)
            self.history.drop(commit)
        if commits:
            self.tree_seq = self.history.latest

    def _change(self, caller: Caller, changes: Sequence[Change]) -> Callable[[], None]:
        """Carry out what a call does beside the tree; only the caller's own version moves."""
        delegated = self._delegated_session(caller)
        if delegated is not None:
            view, point = delegated.view, delegated.point
        else:
            view = self._views.setdefault((caller.agent, caller.session), View(session=caller.session))
            point = partial(self.bookmarks.point, caller.agent)
        self.seq += 1
        before, view.seq = view.seq, self.seq
        undone = [self._carry_out(view, point, change) for change in changes]

        def take_back() -> None:
            for one in reversed(undone):
                one()
            view.seq = before

        return take_back

    def _carry_out(self, view: View, point: Point, change: Change) -> Callable[[], None]:
        match change:
            case ViewChange():
                return change.apply(view)
            case BookmarkChange(label=label, node_id=node_id):
                pointed = point(label, node_id)

                def take_back() -> None:
                    point(label, pointed)

            case SnapshotChange(snapshot=snapshot, dropped=dropped):
                held, serial = self.snapshots, self._snapshot_serial
                self.snapshots = {key: one for key, one in held.items() if key != snapshot.id}
                if not dropped:
                    self.snapshots[snapshot.id] = snapshot
                    self._snapshot_serial += 1

                def take_back() -> None:
                    self.snapshots, self._snapshot_serial = held, serial

        return take_back

    # Undo, snapshots, diffs -----------------------------------------------------------------------

    def undo(self, caller: Caller, *, again: bool, of_version: str | None = None) -> tuple[Commit, ...]:
        """Take back the caller's last change, or the last taking back; if a version is given, only the change that led
        to it."""
        stack = self._stack(caller, again=again)
        if not stack or stack[-1][0].seq <= self.history.floor:
            raise self._nothing_to(again)
        if of_version is not None and self.version_at(stack[-1][-1].seq) != of_version:
            raise Conflict(
                f"This would now {'redo' if again else 'undo'} a different change, so nothing was done. Check again "
                "with dryRun.",
                reason="another_change",
            )
        revert(self.tree, self.history, stack[-1])
        return stack[-1]

    def undo_size(self, caller: Caller, *, again: bool) -> int:
        """How many nodes the next undo or redo of the caller touches."""
        stack = self._stack(caller, again=again)
        return sum(len(commit.before) for commit in stack[-1]) if stack else 0

    def _stack(self, caller: Caller, *, again: bool) -> list[tuple[Commit, ...]]:
        delegated = self._delegated_session(caller)
        undo_stacks = delegated.undo_stacks if delegated else self._undo_stacks.get(caller.agent, UndoStacks())
        return undo_stacks.redo if again else undo_stacks.undo

    def _nothing_to(self, again: bool) -> Conflict:
        if again:
            return Conflict("There is nothing to redo; undo comes first.", reason="nothing_to_redo")
        problem = "You have changed nothing that is not taken back already."
        if self.history.floor:
            problem = (
                f"Of the last {len(self.history)} changes of the tree, none is left that you could take back, and "
                "history does not reach further back. Restore a snapshot, or change the nodes directly."
            )
        return Conflict(problem, reason="nothing_to_undo")

    def snapshot(self, name: str) -> TreeSnapshot:
        """The snapshot with this id; NotFound names the known ones."""
        if name not in self.snapshots:
            raise Unnamed(kind="snapshot", name=name, known=list(self.snapshots), where="snapshot_list")
        return self.snapshots[name]

    def next_snapshot_id(self) -> str:
        """The id that the next snapshot gets."""
        return f"s{self._snapshot_serial + 1}"

    def restore(self, snapshot: TreeSnapshot) -> None:
        """Bring the tree back to a snapshot, inside the open transaction."""
        self.tree.apply(self.history.images_at(snapshot.seq))

    def restore_branch(self, node_id: str, snapshot: TreeSnapshot) -> list[str]:
        """Bring one branch back to a snapshot, inside the open transaction; the nodes that went elsewhere."""
        moment = Moment(self.tree, self.history.images_at(snapshot.seq))
        branch = branch_at(self.tree, moment, node_id, snapshot.id)
        self.tree.apply(branch.images)
        return branch.sent_back

    def moment(self, name: str) -> Moment:
        """The tree at a snapshot or at a version."""
        seq = self.snapshots[name].seq if name in self.snapshots else self.seq_of(name)
        if seq is None:
            if not self.knows(name):
                raise VersionLost(given=name, latest=self.version_at(self.tree_seq))
            raise NotFound(
                f"{name!r} is neither a snapshot nor a version of this workspace. snapshot_list shows the snapshots; "
                "node_history and changes_since show versions.",
                reason="moment",
            )
        if seq < self.history.floor and name not in self.snapshots:
            raise Conflict(
                "The history does not reach back to that version. Ask for a later one, or for a snapshot.",
                reason="history_trimmed",
            )
        return Moment(self.tree, self.history.images_at(seq))

    def diff(self, old: str, new: str) -> Diff:
        """The difference of two snapshots; `current` is the live tree."""
        first, second = self._moment(old), self._moment(new)
        return diff_states(self.tree, self.history.images_at(first), self.history.images_at(second))

    def account_of(self, version: str, *, agent: str, tool: str) -> Account | None:
        """What the call changed that left the tree at a version; None if the history does not reach back to it."""
        seq = self.seq_of(version)
        return None if seq is None else account(self.tree, self.history, seq, agent=agent, tool=tool)

    def pending(self) -> Diff:
        """What the open transaction has changed so far."""
        return diff_states(self.tree, self.tree.before, {})

    def _moment(self, name: str) -> int:
        return self.seq if name == CURRENT else self.snapshot(name).seq
