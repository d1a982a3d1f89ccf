"""Following a journal that several processes write: what others did shows here too, in its order.

`Following` promises to whoever calls a tool on the tree that no answer rests on a state outside of the stored history:

- A call that brings a version waits until this process has it. If the journal does not have it either, the tree refuses
  the call.
- No answer is older than a second, unless the journal cannot be asked. It is asked at each notice of a change, at least
  every half second, and before a change that was refused is run again.
- The journal may turn out not to hold what stands here: after a failover to a database that lacks the last commits, or
  after somebody restored it. Then every call is refused for a second at least, so that a load balancer sees it, and the
  stored tree is read again. What was lost is recorded, as far as it is remembered here.

It relies on the identities of changes alone (`toolgrove.tree.history.Lineage`), and refuses to know how a journal keeps
them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import anyio

from toolgrove.errors import Conflict, StoreDiverged
from toolgrove.store.journal import Deed, Diverged, News, Stalled
from toolgrove.tools.pending_writes import PendingWrites
from toolgrove.tools.subtree_watches import SubtreeWatches
from toolgrove.tools.turns import Turns
from toolgrove.tree.effects import Effects
from toolgrove.tree.history import read_id
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.tools")
STALE = 1.0
"""After how many seconds without a look at the journal an answer waits for one."""
LOST = 3.0
"""After how many seconds without one this process no longer counts as caught up."""
PATIENCE = 2.0
"""For how many seconds a call waits for a version that this process does not have yet."""
APART = 1.0
"""For how many seconds, at least, a process that left the stored history says so before it goes on."""
REMEMBERED = 1_000
"""Of how many changes it is remembered which call made them."""
_RETRY = 1.0


class SharedJournal(Protocol):
    """A journal that others may write as well."""

    async def news(self, newest: str) -> News:
        """What came after a change; raises Diverged if that one is not in the journal."""

    async def read(self) -> SavedWorkspace:
        """The workspace as it is stored now; raises Diverged if it is that of another project."""

    async def missing(self, changes: Sequence[str]) -> Sequence[str]:
        """Those of some changes that are not in the journal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """What this process held and the stored history does not: its newest change, the stored one, and the calls whose
    changes are gone, as far as they are remembered."""

    held: str
    stored: str
    calls: Sequence[tuple[str, str]]


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
        journal: SharedJournal,
        publish: Callable[[Effects, Deed], None],
        record: Callable[[Divergence], Awaitable[None]],
    ) -> None:
        self._workspace = workspace
        self._turns = turns
        self._pending = pending
        self._watches = watches
        self._clock = clock
        self._journal = journal
        self._publish = publish
        self._record = record
        self._one = anyio.Lock()
        self._looked = clock.monotonic()
        self._known = workspace.newest
        self._began: float | None = None
        self._bell = anyio.Event()
        self._is_behind = False
        self._diverged_at: float | None = None
        self._made_by: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self.reruns = 0
        """How often a change did not rest on what the journal held, and was run again."""
        self.divergences = 0
        """How often what stood here was not in the stored history."""

    @property
    def is_current(self) -> bool:
        """Whether it has looked at the journal lately."""
        return self.seconds_behind < LOST

    @property
    def seconds_behind(self) -> float:
        """How long ago it last had all that the journal held."""
        return self._clock.monotonic() - self._looked

    @property
    def changes_behind(self) -> int | None:
        """How many changes the journal had at the last look that are not here yet; None where what stands here is not
        in the stored history."""
        known, stored = read_id(self._known), read_id(self._stored)
        if self.is_diverged or known is None or stored is None:
            return None
        return max(0, known[1] - stored[1])

    @property
    def is_diverged(self) -> bool:
        """Whether what stands here is not in the stored history."""
        return self._diverged_at is not None

    def fell_behind(self) -> None:
        """A change did not rest on what the journal holds: catch up before the next."""
        self._is_behind = True
        self.reruns += 1

    def kept(self, effects: Effects, call_id: str) -> None:
        """Remember which call made a change that the journal has now."""
        self._made_by.append((effects.id, call_id))

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

        Where the journal cannot be asked, reads go on with what there is. A version that the journal does not have is
        left to the tree to refuse.
        """
        self.check()
        if (self._is_behind or self._clock.monotonic() - self._looked > STALE) and not self._is_stuck:
            with anyio.move_on_after(PATIENCE), suppress(Stalled):
                await self.catch_up()
            self.check()
        for version in versions:
            if version is not None and not self._workspace.knows(version):
                await self._reach(version)

    def check(self) -> None:
        """Refuse to answer from a state that is not in the stored history."""
        if self._diverged_at is not None:
            raise StoreDiverged(retry_after=_RETRY)

    async def _reach(self, version: str) -> None:
        with anyio.move_on_after(PATIENCE), suppress(Stalled):
            await self.catch_up()
            self.check()
            return
        raise Conflict(
            f"This replica cannot tell now whether it has version {version!r}. Try again in {_RETRY:g} s.",
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
            except Diverged:
                self._leave()
            finally:
                self._began = None

    async def _look(self) -> None:
        if self._diverged_at is not None:
            if self._clock.monotonic() - self._diverged_at >= APART:
                await self._rejoin()
            return
        lacks = True
        while lacks:  # others may write all the time: what came after the last look is for the next
            self._began = began = self._clock.monotonic()
            news = await self._journal.news(self._stored)
            self._known = news.newest
            lacks = await self._take(news)
        self._looked = began

    @property
    def _is_stuck(self) -> bool:
        """Whether somebody has looked for so long that it is of no use to wait for it."""
        return self._began is not None and self._clock.monotonic() - self._began > PATIENCE

    @property
    def _stored(self) -> str:
        """The newest change that the journal is known to have."""
        first = next(self._pending.effects(), None)
        return self._workspace.newest if first is None else first.parent

    async def _take(self, news: News) -> bool:
        """Let news show; whether some of what there was is still to come."""
        if news.anew is None and all(self._workspace.knows(effects.id) for effects, _ in news.entries):
            return False
        async with self._turns.line:
            await self._be_alone()
            if news.anew is not None:
                if not self._workspace.knows(news.anew.lineage.last):
                    self._resume(news.anew)
                return False
            return self._follow(news)

    async def _be_alone(self) -> None:
        """Wait until no write is open and no thread reads the tree; the caller holds the line."""
        while (last := self._pending.last) is not None:
            await last.kept()
        if not await self._turns.given_back(self._workspace.tree):
            self._workspace.tree = await self._turns.change(self._workspace.tree.fork)

    def _follow(self, news: News) -> bool:
        for effects, deed in news.entries:
            if self._workspace.knows(effects.id):
                continue
            if effects.parent != self._workspace.newest:
                return True
            self._workspace.follow(effects)
            self.kept(effects, deed.call_id)
            self._watches.tell(self._watches.touched(self._workspace.tree, effects))
            self._publish(effects, deed)
        return news.is_part

    def _resume(self, saved: SavedWorkspace) -> None:
        self._workspace.resume(saved)
        self._watches.tell_all()

    def _leave(self) -> None:
        """Stop answering: what stands here is not in the stored history."""
        if self._diverged_at is None:
            self._diverged_at = self._clock.monotonic()
            self.divergences += 1
            log.critical(
                "The store does not hold %s, the newest change here: it was set back to an earlier state, or is "
                "another one now. Nothing is answered until the stored tree has been read again.",
                self._stored,
            )

    async def _rejoin(self) -> None:
        """Go on from what is stored, and record what was held here and is gone."""
        self._began = began = self._clock.monotonic()
        saved = await self._journal.read()
        missing = frozenset(await self._journal.missing([change for change, _ in self._made_by]))
        async with self._turns.line:
            await self._be_alone()
            lost = Divergence(
                held=self._workspace.newest,
                stored=saved.lineage.last,
                calls=[one for one in self._made_by if one[0] in missing],
            )
            self._resume(saved)
        self._made_by = deque((one for one in self._made_by if one[0] not in missing), maxlen=REMEMBERED)
        self._looked, self._known, self._diverged_at = began, saved.lineage.last, None
        log.warning(
            "The stored tree was read again and is served again. Changes that were answered here and are gone: %d.",
            len(lost.calls),
        )
        await self._record(lost)
