"""The tree tools as a source of tools: runs a call on the workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from toolgrove.errors import EffectChanged, GroveError
from toolgrove.store.journal import Behind, Stalled
from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import DEMANDS, SOURCE
from toolgrove.tools.pending_writes import PendingWrite, PendingWrites
from toolgrove.tree.effects import Recorded
from toolgrove.tree.footprint import EVERYTHING
from toolgrove.tree.impact import NOTHING, Impact
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Call, Clock, Foreseen, Result, Tool


class WorkspaceSource:
    """One workspace behind the tools.

    A write takes effect in memory at once and lets the next writer in while the journal makes it durable;
    no answer to a writer or a reader rests on a write that the journal does not have.
    """

    name = SOURCE

    def __init__(
        self, workspace: Workspace, clock: Clock, writable: Callable[[Call], Awaitable[None]] | None = None
    ) -> None:
        self.workspace = workspace
        self._clock = clock
        self._writable = writable
        self._pending = PendingWrites()
        self._tools = tuple(
            Tool(
                spec=tool.spec,
                source=self,
                mutates=tool.mutates,
                targets=tool.targets,
                demands=DEMANDS if tool.mutates else (),
            )
            for tool in DECLARATIONS.values()
        )

    def tools(self) -> Sequence[Tool]:
        return self._tools

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through; again, if what it saw was taken back, or what it wrote.

        A write waits here while somebody else holds the store: nothing of it shows meanwhile, so reads go on.
        """
        while True:
            if self._writable is not None and DECLARATIONS[call.name].mutates and not call.arguments.get("dryRun"):
                await self._writable(call)
            # From here until its entry has its place in the journal nothing waits: one writer at a time.
            seen = self._pending.last
            try:
                self._check_version(call)
                result, recorded = self._run(call)
            except GroveError:
                if await _is_kept(seen):
                    raise
                continue
            if recorded is not None:
                try:
                    await self._settle(call, result, recorded)
                except Stalled:
                    continue
                except Behind:
                    if seen is None:
                        raise
                    continue
                return result
            if await _is_kept(seen):
                return result

    async def foresee(self, call: Call) -> Foreseen:
        """What a call would change, without changing it; a call that would fail fails here."""
        while True:
            seen = self._pending.last
            try:
                foreseen = self._foresee(call)
            except GroveError:
                if await _is_kept(seen):
                    raise
                continue
            if await _is_kept(seen):
                return foreseen

    def _foresee(self, call: Call) -> Foreseen:
        workspace, declaration = self.workspace, DECLARATIONS[call.name]
        if not declaration.mutates or call.arguments.get("dryRun", False):
            return Foreseen(NOTHING, "")
        context = self._context(call, dry_run=True)
        try:
            declaration.run(context, call.arguments)
            workspace.check_boundary(call.caller)
            impact = _impact(context)
            return Foreseen(impact.sentence(), impact.digest)
        finally:
            workspace.tree.rollback()

    def _context(self, call: Call, *, dry_run: bool) -> ToolContext:
        return ToolContext(
            workspace=self.workspace, caller=call.caller, tool=call.name, now=self._clock.wall(), dry_run=dry_run
        )

    def _check_version(self, call: Call) -> None:
        """Refuse a write that rests on something older than what there is."""
        caller, declaration, token = call.caller, DECLARATIONS[call.name], call.arguments.get("versionToken")
        if declaration.mutates or token is not None:
            on_all = caller.concurrency == "tree"
            ground = EVERYTHING if on_all else declaration.rests_on(self.workspace.tree, call.arguments)
            self.workspace.check_version(caller, token, ground)

    def _run(self, call: Call) -> tuple[Result, Recorded | None]:
        """Run the tool; nothing of it stays if it fails."""
        workspace, declaration, arguments = self.workspace, DECLARATIONS[call.name], call.arguments
        dry_run = arguments.get("dryRun", False)
        context = self._context(call, dry_run=dry_run)
        recorded = None
        if not declaration.mutates:
            result = declaration.run(context, arguments)
        else:
            try:
                result = declaration.run(context, arguments)
                if dry_run:
                    workspace.check_boundary(call.caller)
                    result = {**result, "wouldChange": workspace.pending().to_json(), "dryRun": True}
                    workspace.tree.rollback()
                else:
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
        return result, recorded

    async def _settle(self, call: Call, result: Result, recorded: Recorded) -> None:
        """Make the call durable, then let it show; what cannot be made durable is taken back."""
        call.targets = tuple(recorded.effects.after)
        write = self._pending.add(recorded)
        try:
            if call.settle is not None:
                await call.settle(call, result, recorded.effects)
        except BaseException:
            if not call.settled:
                self._pending.withdraw(write)
                raise
            self._pending.keep(write)
            raise
        self._pending.keep(write)


def _impact(context: ToolContext) -> Impact:
    """All that the call has done so far."""
    return Impact(context.tree, context.tree.before, context.changes, context.workspace.bookmarks_of(context.caller))


async def _is_kept(write: PendingWrite | None) -> bool:
    return write is None or await write.kept()
