"""The tree tools as a source of tools: runs a call on the workspace, and gates its writers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import anyio

from toolgrove.errors import GroveError
from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.declaration import SOURCE
from toolgrove.tools.desk import Desk
from toolgrove.tools.line import Line, Place
from toolgrove.tree.effects import Recorded
from toolgrove.tree.footprint import EVERYTHING, Footprint
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
        self._lock = anyio.Lock()
        self._writer: Call | None = None
        self._line = Line()
        self._tools = tuple(
            Tool(spec=tool.spec, source=self, mutates=tool.mutates, targets=tool.targets, gate=self)
            for tool in DECLARATIONS.values()
        )

    def tools(self) -> Sequence[Tool]:
        """Every tree tool."""
        return self._tools

    async def enter(self, call: Call) -> None:
        """Wait for the turn to write, then check the version; again, if what it was held against is taken back."""
        while True:
            await self._turn()
            self._writer = call
            seen = self._line.last
            try:
                self.workspace.check_version(call.caller, call.arguments.get("versionToken"), self._ground(call))
            except GroveError:
                self.leave(call)
                if await _is_kept(seen):
                    raise
            except BaseException:
                self.leave(call)
                raise
            else:
                return

    async def _turn(self) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # The journal lets nobody go before it has answered, so this is where a cancelled writer leaves.
            await asyncio.sleep(0)
        try:
            self._lock.acquire_nowait()
        except anyio.WouldBlock:
            await self._lock.acquire()

    def _ground(self, call: Call) -> Footprint:
        """What the call rests on."""
        if call.caller.concurrency == "tree":
            return EVERYTHING
        return DECLARATIONS[call.name].rests_on(self.workspace.tree, call.arguments)

    def leave(self, call: Call) -> None:
        """Give the turn to the next writer, unless that was done already."""
        if self._writer is call:
            self._writer = None
            self._lock.release()

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through; again, if what it saw was taken back."""
        while True:
            seen = self._line.last
            try:
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
        # The next writer starts when this task first waits, and by then the entry has its place in the journal.
        self.leave(call)
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
