"""Following a journal that several processes write: what others did shows here too, in its order."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio

from toolgrove.errors import Conflict
from toolgrove.store.journal import Deed, News, Stalled
from toolgrove.tools.pending_writes import PendingWrites
from toolgrove.tools.subtree_watches import SubtreeWatches
from toolgrove.tools.turns import Turns
from toolgrove.tree.effects import Effects
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.tools")
STALE = 1.0
"""After how many seconds without a look at the journal an answer waits for one."""
LOST = 3.0
"""After how many seconds without one this process no longer counts as caught up."""
PATIENCE = 2.0
"""For how many seconds a call waits for a version that this process does not have yet."""
_RETRY = 1.0


class Following:
    """Brings a workspace up to its journal; whoever changes the workspace stands in the same line."""

    def __init__(
        self,
        workspace: Workspace,
        turns: Turns,
        pending: PendingWrites,
        watches: SubtreeWatches,
        *,
        clock: Clock,
        news: Callable[[int], Awaitable[News]],
        tell: Callable[[Effects, Deed], None],
    ) -> None:
        self._workspace = workspace
        self._turns = turns
        self._pending = pending
        self._watches = watches
        self._clock = clock
        self._news = news
        self._tell = tell
        self._one = anyio.Lock()
        self._looked = clock.monotonic()
        self._began: float | None = None
        self._bell = anyio.Event()
        self._is_behind = False
        self.reruns = 0
        """How often a change did not rest on what the journal held, and was run again."""

    @property
    def is_current(self) -> bool:
        """Whether it has looked at the journal lately."""
        return self._clock.monotonic() - self._looked < LOST

    def fell_behind(self) -> None:
        """A change did not rest on what the journal holds: catch up before the next."""
        self._is_behind = True
        self.reruns += 1

    def ring(self) -> None:
        """There may be news."""
        self._bell.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Catch up whenever the bell rings."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def _run(self) -> None:
        while True:
            await self._bell.wait()
            self._bell = anyio.Event()
            with suppress(Stalled):
                await self.catch_up()

    async def prepare(self, *versions: str | None) -> None:
        """See that a call that knows of versions finds them here, and that no answer is older than a second.

        Where the journal cannot be asked, reads go on with what there is.
        """
        if (self._is_behind or self._clock.monotonic() - self._looked > STALE) and not self._is_stuck:
            with anyio.move_on_after(PATIENCE), suppress(Stalled):
                await self.catch_up()
        for version in versions:
            if version is not None and self._workspace.is_ahead(version):
                await self._reach(version)

    async def _reach(self, version: str) -> None:
        with anyio.move_on_after(PATIENCE), suppress(Stalled):
            await self.catch_up()
        if self._workspace.is_ahead(version):
            raise Conflict(
                f"This replica has not reached version {version!r} yet. Try again in {_RETRY:g} s.",
                reason="replica_behind",
                retryAfter=_RETRY,
            )

    async def catch_up(self) -> None:
        """Take over all that the journal holds by now; raises Stalled where it cannot be asked."""
        wanted = self._clock.monotonic()
        async with self._one:
            if self._looked > wanted and not self._is_behind:
                return  # somebody else has looked since
            self._is_behind = False
            try:
                await self._look()
            finally:
                self._began = None

    async def _look(self) -> None:
        lacks = True
        while lacks:  # others may write all the time: what came after the last look is for the next
            self._began = began = self._clock.monotonic()
            lacks = await self._take(await self._news(self._kept))
        self._looked = began

    @property
    def _is_stuck(self) -> bool:
        """Whether somebody has looked for so long that it is of no use to wait for it."""
        return self._began is not None and self._clock.monotonic() - self._began > PATIENCE

    @property
    def _kept(self) -> int:
        """The revision that the journal is known to have."""
        first = next(self._pending.effects(), None)
        return self._workspace.revision if first is None else first.base

    async def _take(self, news: News) -> bool:
        """Let news show; whether some of what there was is still to come."""
        if news.anew is None and all(effects.revision <= self._workspace.revision for effects, _ in news.entries):
            return False
        async with self._turns.line:
            while (last := self._pending.last) is not None:
                await last.kept()
            if not await self._turns.given_back(self._workspace.tree):
                self._workspace.tree = await self._turns.change(self._workspace.tree.fork)
            if news.anew is not None:
                if news.anew.revision > self._workspace.revision:
                    self._workspace.resume(news.anew)
                return False
            return self._follow(news)

    def _follow(self, news: News) -> bool:
        for effects, deed in news.entries:
            if effects.revision <= self._workspace.revision:
                continue
            if effects.base != self._workspace.revision:
                return True
            self._workspace.follow(effects)
            self._watches.tell(self._watches.touched(self._workspace.tree, effects))
            self._tell(effects, deed)
        return news.is_part
