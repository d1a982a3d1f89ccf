"""The tree tools as a source of tools: runs a call on the workspace."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.errors import GroveError
from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.declaration import SOURCE
from toolgrove.tools.desk import Desk
from toolgrove.tools.line import Line, Place
from toolgrove.tree.effects import Recorded
from toolgrove.tree.footprint import EVERYTHING
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Call, Clock, Result, Tool


class WorkspaceSource:
    """One workspace behind the tools.

    A write takes effect in memory at once and lets the next writer in while the journal makes it durable;
    nobody, writer or reader, gets an answer that rests on a write before the journal has it.
    """

    name = SOURCE

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self.workspace = workspace
        self._clock = clock
        self._line = Line()
        self._tools = tuple(
            Tool(spec=tool.spec, source=self, mutates=tool.mutates, targets=tool.targets)
            for tool in DECLARATIONS.values()
        )

    def tools(self) -> Sequence[Tool]:
        """Every tree tool."""
        return self._tools

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through; again, if what it saw was taken back."""
        while True:
            # From here until its entry has its place in the journal nothing waits: one writer at a time.
            seen = self._line.last
            try:
                self._check_version(call)
                result, recorded = self._run(call)
            except GroveError:
                if await _is_kept(seen):
                    raise
                continue
            if recorded is not None:
                await self._settle(call, result, recorded)
                return result
            if await _is_kept(seen):
                return result

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
        desk = Desk(workspace=workspace, caller=call.caller, tool=call.name, now=self._clock.wall(), dry_run=dry_run)
        recorded = None
        if not declaration.mutates:
            result = declaration.run(desk, arguments)
        else:
            try:
                result = declaration.run(desk, arguments)
                if dry_run:
                    workspace.check_boundary(call.caller)
                    result = {**result, "wouldChange": workspace.pending().to_json(), "dryRun": True}
                    workspace.tree.rollback()
                else:
                    desk.commit()
                    recorded = workspace.record(
                        call.caller, desk.commits, desk.changes, desk.move, self._line.effects()
                    )
            except BaseException:
                workspace.tree.rollback()
                workspace.retract(desk.commits)
                raise
        result["version"] = workspace.version(call.caller)
        return result, recorded

    async def _settle(self, call: Call, result: Result, recorded: Recorded) -> None:
        """Make the call durable, then let it show; what cannot be made durable is taken back."""
        call.targets = tuple(recorded.effects.after)
        place = self._line.join(recorded)
        try:
            if call.settle is not None:
                await call.settle(call, result, recorded.effects)
        except BaseException:
            if not call.settled:
                self._line.withdraw(place)
                raise
            self._line.keep(place)
            raise
        self._line.keep(place)


async def _is_kept(place: Place | None) -> bool:
    return place is None or await place.kept()
