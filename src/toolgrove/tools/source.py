"""The tree tools as a source of tools: runs a call on the workspace, and gates its writers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from toolgrove.store.journal import Effects
from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.declaration import SOURCE, Declaration
from toolgrove.tools.desk import Desk
from toolgrove.tree.footprint import EVERYTHING
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Call, Clock, Result, Tool


class WorkspaceSource:
    """One workspace behind the tools; a read never sees a write that is not in the journal yet."""

    name = SOURCE

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self.workspace = workspace
        self._clock = clock
        self._lock = anyio.Lock(fast_acquire=True)
        self._tools = tuple(
            Tool(spec=tool.spec, source=self, mutates=tool.mutates, targets=tool.targets, gate=self)
            for tool in DECLARATIONS.values()
        )

    def tools(self) -> Sequence[Tool]:
        """Every tree tool."""
        return self._tools

    @asynccontextmanager
    async def writing(self, call: Call) -> AsyncIterator[None]:
        """Wait for the turn to write, then check the version."""
        async with self._lock:
            desk = self._desk(call)
            checks_nodes = call.caller.concurrency == "node"
            rests_on = DECLARATIONS[call.name].rests_on(desk, call.arguments) if checks_nodes else EVERYTHING
            self.workspace.check_version(call.caller, call.arguments.get("versionToken"), rests_on)
            yield

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through."""
        declaration = DECLARATIONS[call.name]
        desk = self._desk(call)
        if declaration.mutates:
            return await self._write(call, declaration, desk)
        if self._lock.locked():
            async with self._lock:
                return self._read(call, declaration, desk)
        return self._read(call, declaration, desk)

    def _desk(self, call: Call) -> Desk:
        return Desk(
            workspace=self.workspace,
            caller=call.caller,
            tool=call.name,
            now=self._clock.wall(),
            dry_run=call.arguments.get("dryRun", False),
        )

    def _read(self, call: Call, declaration: Declaration, desk: Desk) -> Result:
        result = declaration.run(desk, call.arguments)
        result["version"] = self.workspace.version(call.caller)
        return result

    async def _write(self, call: Call, declaration: Declaration, desk: Desk) -> Result:
        workspace = self.workspace
        try:
            result = declaration.run(desk, call.arguments)
            if desk.dry_run:
                workspace.check_boundary(call.caller)
                result["wouldChange"] = workspace.pending().to_json()
            else:
                desk.commit()
        except BaseException:
            workspace.tree.rollback()
            workspace.withdraw(desk.commits)
            raise
        if desk.dry_run:
            workspace.tree.rollback()
            return {**result, "dryRun": True, "version": workspace.version(call.caller)}
        result["version"] = workspace.version_after(call.caller, desk.changes)
        await self._settle(call, result, desk)
        return result

    async def _settle(self, call: Call, result: Result, desk: Desk) -> None:
        """Make the call durable, then let it show; what cannot be made durable is taken back."""
        workspace, commits = self.workspace, tuple(desk.commits)
        touched = (node_id for commit in commits for node_id in commit.before)
        call.targets = tuple(dict.fromkeys(touched))[:20]
        try:
            if call.settle is not None:
                await call.settle(call, result, Effects(commits=commits, changes=tuple(desk.changes)))
        except BaseException:
            workspace.withdraw(commits)
            raise
        workspace.apply(call.caller, desk.changes)
        if desk.settled is not None:
            desk.settled(commits)
        else:
            workspace.remember(call.caller, commits)
        workspace.trim()
