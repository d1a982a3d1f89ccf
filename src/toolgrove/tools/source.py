"""The tree tools as a source of tools: runs a call on the workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from toolgrove.errors import Conflict, EffectChanged, GroveError
from toolgrove.giving_way import giving_way
from toolgrove.notation.half_characters import may_hold_half, whole, whole_text
from toolgrove.store.journal import Behind, Deed, Stalled
from toolgrove.tools.answer_size import fitted, written
from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import DEMANDS, SOURCE
from toolgrove.tools.effort import BESIDE, LONG, effort
from toolgrove.tools.following import Divergence, Following, SharedJournal
from toolgrove.tools.pending_writes import PendingWrite, PendingWrites
from toolgrove.tools.subtree_watches import SubtreeWatches
from toolgrove.tools.turns import Turns
from toolgrove.tree.effects import Effects, Recorded
from toolgrove.tree.footprint import EVERYTHING, NOTHING, Footprint
from toolgrove.tree.history import changed_parents
from toolgrove.tree.impact import NOTHING as NO_IMPACT
from toolgrove.tree.impact import Impact
from toolgrove.tree.node import Image
from toolgrove.tree.tree import ROOT, Tree
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Call, Clock, Foreseen, Result, Tool, Written

Out = TypeVar("Out")
_VERSION = 12
_LOOK = 0.25
RUNS = 50
"""How often a call is run, at most, because other replicas were quicker or what it saw was taken back."""
_PATIENT = 3
"""After how many runs others are kept waiting, so that the next one comes first."""
DOCUMENTS = frozenset(("export_subtree", "export_view"))
"""The tools whose answers are whole where a program asks; over MCP and in a run a model does."""


class WorkspaceSource:
    """One workspace behind the tools.

    A short write takes effect in memory at once and lets the next writer in while the journal makes it durable;
    no answer to a writer or a reader rests on a write that the journal does not have. A long call works in a thread:
    a read on the tree, which nobody changes meanwhile, a write on a twin of the workspace, which takes its place when
    the journal has the write. So others see the tree before it or after it. `long_after` is for how many microseconds,
    by a rough guess, others can wait.
    """

    name = SOURCE
    long_after: float = LONG

    def __init__(
        self, workspace: Workspace, clock: Clock, writable: Callable[[Call], Awaitable[None]] | None = None
    ) -> None:
        self.workspace = workspace
        self._clock = clock
        self._writable = writable
        self._pending = PendingWrites()
        self._turns = Turns()
        self.watches = SubtreeWatches()
        self.following: Following | None = None
        self._tools = tuple(
            Tool(
                spec=tool.spec,
                source=self,
                mutates=tool.mutates,
                targets=tool.targets,
                demands=DEMANDS if tool.mutates else (),
                accepts=tool.accepts,
                stands_for=tool.stands_for,
            )
            for tool in DECLARATIONS.values()
        )

    def follow(
        self,
        journal: SharedJournal,
        publish: Callable[[Effects, Deed], None],
        record: Callable[[Divergence], Awaitable[None]],
    ) -> Following:
        """Share the workspace with other processes from now on."""
        self.following = Following(
            self.workspace,
            self._turns,
            self._pending,
            self.watches,
            clock=self._clock,
            journal=journal,
            publish=publish,
            record=record,
        )
        return self.following

    def tools(self) -> Sequence[Tool]:
        return self._tools

    async def settled(self) -> tuple[str, list[tuple[str, Image]]]:
        """The newest change that the journal has, and every node as that left it."""
        async with self._turns.line:
            while (last := self._pending.last) is not None:
                await last.kept()
            return self.workspace.newest, [(node.id, node.image()) for node in self._tree.nodes.values()]

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through; again, if what it saw was taken back, or what it wrote.

        A write waits here while somebody else holds the store: nothing of it shows meanwhile, so reads go on.
        """
        mutates = DECLARATIONS[call.name].mutates
        following, runs = self.following, 0
        while True:
            if following is not None:
                await following.prepare(call.at_least, call.arguments.get("versionToken"))
                runs += 1
                call.overdue = runs > _PATIENT
                if runs > RUNS:
                    raise _overtaken()
            if call.at_least is not None:
                self.workspace.check_known(call.caller, call.at_least)
            if self._writable is not None and mutates and not call.arguments.get("dryRun"):
                await self._writable(call)
            long = effort(call.name, self.workspace, call.caller, call.arguments) > self.long_after
            if not long and (not mutates or self._is_free(call)):
                result = await self._at_once(call)
            elif not mutates:
                with giving_way():
                    result = await self._read(call)
            else:
                async with self._turns.line:
                    inline = not long and await self._can_be_changed(call)
                    result = await (self._at_once(call) if inline else self._change(call))
            if result is not None:
                return result

    async def foresee(self, call: Call) -> Foreseen:
        """What a call would change, without changing it; a call that would fail fails here."""
        if not DECLARATIONS[call.name].mutates or call.arguments.get("dryRun", False):
            return Foreseen(NO_IMPACT, "")
        while True:
            if self.following is not None:
                self.following.check()
            long = effort(call.name, self.workspace, call.caller, call.arguments) > self.long_after
            if not long and self._is_free(call):
                foreseen = await self._foresee_at_once(call)
            else:
                async with self._turns.line:
                    if not long and await self._can_be_changed(call):
                        foreseen = await self._foresee_at_once(call)
                    else:
                        foreseen = await self._on_a_twin(call, lambda twin: self._foresee(call, twin))
            if foreseen is not None:
                return foreseen

    # Short calls, on the event loop -----------------------------------------------------------------

    def _is_free(self, call: Call) -> bool:
        """Whether a change can be made in place now."""
        return not self._turns.line.locked() and (call.name in BESIDE or not self._turns.is_read(self._tree))

    async def _can_be_changed(self, call: Call) -> bool:
        """Whether, in a moment at the latest, whoever holds the line can make a change in place."""
        return call.name in BESIDE or await self._turns.given_back(self._tree)

    @property
    def _tree(self) -> Tree:
        return self.workspace.tree

    async def _at_once(self, call: Call) -> Result | None:
        """Run a call in place; None if what it saw was taken back, or what it wrote."""
        call.in_thread = False  # foreseeing it may have been
        # From here until its entry has its place in the journal nothing waits: one writer at a time.
        seen = self._pending.last
        try:
            result, recorded = self._run(call, self.workspace)
        except GroveError:
            if await self._is_kept(call, seen):
                raise
            return None
        if recorded is None:
            return result if seen is None or await self._is_kept(call, seen) else None
        try:
            await self._settle(call, result, recorded)
        except Stalled:
            return None
        except Behind:
            if self.following is not None:
                self.following.fell_behind()
            elif seen is None:
                raise
            return None
        return result

    async def _is_kept(self, call: Call, seen: PendingWrite | None) -> bool:
        """Whether what a call saw is in the journal; where a disk holds that up for long, the call is refused."""
        if seen is None:
            return True
        while seen.is_open:
            with anyio.move_on_after(_LOOK):
                return await seen.kept()
            if self._writable is not None:
                await self._writable(call)
        return await seen.kept()

    async def _foresee_at_once(self, call: Call) -> Foreseen | None:
        seen = self._pending.last
        try:
            foreseen = self._foresee(call, self.workspace)
        except GroveError:
            if await self._is_kept(call, seen):
                raise
            return None
        return foreseen if await self._is_kept(call, seen) else None

    async def _settle(self, call: Call, result: Result, recorded: Recorded) -> None:
        """Make the call durable, then let it show; what cannot be made durable is taken back."""
        call.targets = _targets(call, result, recorded.effects)
        touched = self.watches.touched(self._tree, recorded.effects)  # now: others may change the tree meanwhile
        write = self._pending.add(recorded)
        try:
            if call.settle is not None:
                await call.settle(call, result, recorded.effects)
        except BaseException:
            if not call.settled:
                self._pending.withdraw(write)
                raise
            self._pending.keep(write)
            self._show(call, recorded.effects, touched)
            raise
        self._pending.keep(write)
        self._show(call, recorded.effects, touched)

    def _show(self, call: Call, effects: Effects, touched: frozenset[str]) -> None:
        """What a call did is in the journal, and others may know of it."""
        if self.following is not None:
            self.following.kept(effects, call.id)
        self.watches.tell(touched)

    # Long calls, in a thread ------------------------------------------------------------------------

    async def _read(self, call: Call) -> Result:
        """Read a tree that stays as it is, whatever others do meanwhile."""
        if self._pending.last is not None:
            async with self._turns.line:
                await self._all_kept()
                reading = self._start_reading(call)
        else:
            reading = self._start_reading(call)
        tree, answer = reading
        try:
            return await answer
        finally:
            await self._drop(tree)

    def _start_reading(self, call: Call) -> tuple[Tree, Awaitable[Result]]:
        call.in_thread = True
        twin = self.workspace.twin(call.caller)
        return twin.tree, self._turns.read(twin.tree, lambda: self._run(call, twin)[0])

    async def _change(self, call: Call) -> Result | None:
        """Change a twin of the workspace; it takes the place of the workspace once the journal has the change.

        None if the journal could not take it now.
        """
        with giving_way():
            return await self._change_a_twin(call)

    async def _change_a_twin(self, call: Call) -> Result | None:
        (result, recorded), twin = await self._on_a_twin(call, lambda twin: (self._run(call, twin), twin))
        if recorded is None:
            return result
        call.targets = _targets(call, result, recorded.effects)
        before = self._tree
        try:
            if call.settle is not None:
                await call.settle(call, result, recorded.effects)
        except Stalled:
            return None
        except Behind:
            if self.following is None:
                raise
            self.following.fell_behind()
            return None
        except BaseException:
            if call.settled:
                self._become(call, twin, recorded)
            raise
        self._become(call, twin, recorded)
        await self._drop(before)
        return result

    def _become(self, call: Call, twin: Workspace, recorded: Recorded) -> None:
        self.workspace.become(twin)
        self._show(call, recorded.effects, self.watches.touched(self._tree, recorded.effects))

    async def _on_a_twin(self, call: Call, work: Callable[[Workspace], Out]) -> Out:
        """Work on a twin of the workspace; the caller holds the line."""
        await self._all_kept()
        call.in_thread = True
        twin = self.workspace.twin(call.caller)

        def on_a_fork() -> Out:
            if call.name not in BESIDE:
                twin.tree = twin.tree.fork()
            return work(twin)

        return await self._turns.change(on_a_fork)

    async def _all_kept(self) -> None:
        """Wait until the journal has answered to every write; who holds the line sees no new one."""
        while (last := self._pending.last) is not None:
            await last.kept()

    async def _drop(self, tree: Tree) -> None:
        """Take a tree apart that is no longer the one, and that nobody reads any more."""
        if tree is not self._tree and not self._turns.is_read(tree):
            with anyio.CancelScope(shield=True):
                await self._turns.change(tree.dismantle)

    # One call, wherever it runs ---------------------------------------------------------------------

    def _foresee(self, call: Call, workspace: Workspace) -> Foreseen:
        context = self._context(call, workspace, dry_run=True)
        try:
            DECLARATIONS[call.name].run(context, call.arguments)
            workspace.check_boundary(call.caller)
            impact = _impact(context)
            return Foreseen(whole_text(impact.sentence()), impact.digest)
        finally:
            workspace.tree.rollback()

    def _context(self, call: Call, workspace: Workspace, *, dry_run: bool) -> ToolContext:
        return ToolContext(
            workspace=workspace,
            caller=call.caller,
            tool=call.name,
            now=self._clock.wall(),
            dry_run=dry_run,
            budget=budget(call),
        )

    def _check_version(self, call: Call, workspace: Workspace) -> None:
        """Refuse a write that rests on something older than what there is."""
        caller, declaration, token = call.caller, DECLARATIONS[call.name], call.arguments.get("versionToken")
        if declaration.mutates or token is not None:
            ground = EVERYTHING if caller.concurrency == "tree" else NOTHING
            if ground is NOTHING and declaration.rests_on is not None:
                ground = declaration.rests_on(workspace.tree, call.arguments)
            workspace.check_version(caller, token, ground)

    def _check_touched(self, call: Call, context: ToolContext) -> None:
        """Refuse a change whose ground shows only now, if that has changed since its version."""
        if DECLARATIONS[call.name].rests_on is None and call.caller.concurrency == "node":
            tree = context.tree
            touched = Footprint(frozenset(tree.before), changed_parents(tree, tree.before)) | context.looked_at
            context.workspace.check_version(call.caller, call.arguments.get("versionToken"), touched)

    def _run(self, call: Call, workspace: Workspace) -> tuple[Result, Recorded | None]:
        """Run the tool; nothing of it stays if it fails."""
        self._check_version(call, workspace)
        declaration, arguments = DECLARATIONS[call.name], call.arguments
        dry_run = arguments.get("dryRun", False)
        context = self._context(call, workspace, dry_run=dry_run)
        recorded = None
        if not declaration.mutates:
            result = _read(call, context, declaration.run(context, arguments), declaration.rest)
        else:
            try:
                result = declaration.run(context, arguments)
                self._check_touched(call, context)
                if dry_run:
                    workspace.check_boundary(call.caller)
                    result = {**result, "wouldChange": workspace.pending().to_json(), "dryRun": True}
                    workspace.tree.rollback()
                result = _bounded(result, context, "" if dry_run else declaration.rest)
                if not dry_run:
                    if call.footprint is not None and call.footprint != _impact(context).digest:
                        raise EffectChanged
                    context.commit()
                    recorded = workspace.record(
                        call.caller, context.commits, context.changes, context.move, self._pending.effects()
                    )
            except BaseException:
                workspace.tree.rollback()
                workspace.retract(context.commits)
                raise
            result["version"] = workspace.version(call.caller)
            result = _write_down(call, result, written(result, None))
        return result, recorded


def _targets(call: Call, result: Result, effects: Effects) -> tuple[str, ...]:
    """What a change was about: the nodes that it changed, else what its answer names, else what its arguments name.

    The filters of a view are about the whole tree.
    """
    if effects.after:
        return tuple(map(whole_text, effects.after))
    named = tuple(value for key, value in result.items() if key.endswith("Id") and isinstance(value, str))
    return named if named or call.granted.targets else (ROOT,)


def _overtaken() -> Conflict:
    return Conflict(
        f"Others were quicker than this change, {RUNS} times in a row. Nothing was changed; try again in 1 s.",
        reason="overtaken",
        retryAfter=1.0,
    )


def budget(call: Call) -> int | None:
    """How many tokens the answer to a call may have; None for a document that a program asked for."""
    asked: int | None = call.arguments.get("maxTokens")
    if asked is not None:
        return asked
    is_whole = call.name in DOCUMENTS and not call.for_model
    return None if is_whole else call.caller.answer_tokens


def _read(call: Call, context: ToolContext, result: Result, rest: str) -> Result:
    """The answer to a read within its budget, with the version last."""
    version = context.workspace.version(call.caller)
    if not call.in_thread:
        result["version"] = version
        text = written(result, None if context.budget is None else context.budget - _VERSION)
        if text is not None:
            return _write_down(call, result, text)
        del result["version"]
    result = _bounded(result, context, rest)
    result["version"] = version
    shown: Result = whole(result)
    return shown


def _write_down(call: Call, result: Result, text: str | None) -> Result:
    """Keep the text of a result for all who need it; what an older store holds of half characters is replaced."""
    if text is None or may_hold_half(text):
        shown: Result = whole(result)
        if shown is not result:
            result, text = shown, None if text is None else written(shown, None)
    call.written = None if text is None else Written(result, text)
    return result


def _bounded(result: Result, context: ToolContext, rest: str) -> Result:
    """The answer within its budget, with room for the version that comes last."""
    return result if context.budget is None else fitted(result, context.budget - _VERSION, rest)


def _impact(context: ToolContext) -> Impact:
    """All that the call has done so far."""
    return Impact(context.tree, context.tree.before, context.changes, context.workspace.bookmarks_of(context.caller))
