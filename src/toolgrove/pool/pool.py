"""The pool of a project: runs its sources side by side and keeps one snapshot of what they offer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from toolgrove.pool.definition_lint import mentioned
from toolgrove.pool.offer import Distrusting, Noticing, Offer, PoolSource, Speaking, Unavailable
from toolgrove.pool.prompts import PromptServer
from toolgrove.pool.resources import ResourceServer
from toolgrove.pool.snapshot import PoolSnapshot, SourceState, compose

log = logging.getLogger("toolgrove.pool")
BUDGET = 5.0
GRACE = 1.0


class Pool:
    """Rebuilds only what changed, once for all who ask at the same time.

    A source has `budget` seconds to answer; the first time `patience`, where that is given.
    """

    def __init__(
        self,
        builtin: Sequence[Offer],
        sources: Sequence[PoolSource],
        *,
        budget: float = BUDGET,
        patience: float | None = None,
        changed: Callable[[PoolSnapshot], None] = lambda snapshot: None,
    ) -> None:
        self._builtin = builtin
        self._sources = {source.name: source for source in sources}
        self._budget = budget
        self._patience = patience
        self._asked: set[str] = set()
        self._changed = changed
        self._offers: dict[str, Sequence[Offer]] = {}
        self._judged: dict[str, Sequence[Offer]] = {}
        """Those that were looked through for tools of others: what agents may see."""
        self._problems: dict[str, str] = {}
        self._holders: dict[str, str] = {}
        self._stale = set(self._sources)
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._rebuilt: anyio.Event | None = None
        self._tasks: TaskGroup | None = None
        self._snapshot = self._compose(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the sources alive; on leaving, all are ended at once."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for source in self._sources.values():
                self._begin(source)
            self._refresh()
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    async def snapshot(self) -> PoolSnapshot:
        """What there is now; sources that changed are asked again first, new ones up to the whole budget."""
        if self._tasks is not None and (self._stale or self._rebuilt is not None):
            with anyio.move_on_after(GRACE if self._offers.keys() >= self._sources.keys() else None):
                while self._stale or self._rebuilt is not None:
                    await self._refresh().wait()
        return self._snapshot

    @property
    def latest(self) -> PoolSnapshot:
        """The snapshot as it was last built, without asking anybody."""
        return self._snapshot

    @property
    def awaited(self) -> Sequence[str]:
        """The sources that were asked and have not answered yet, in the order of the file."""
        return [name for name in self._sources if name in self._asked]

    @property
    def resource_servers(self) -> Sequence[ResourceServer]:
        """The sources that have resources too, in the order of the file."""
        return [source for source in self._sources.values() if isinstance(source, ResourceServer)]

    @property
    def prompt_servers(self) -> Sequence[PromptServer]:
        """The sources that have prompts too, in the order of the file."""
        return [source for source in self._sources.values() if isinstance(source, PromptServer)]

    def messages(self) -> Iterator[tuple[tuple[str, str], int]]:
        """How much each source logged by itself, by its name and the level."""
        for name, source in self._sources.items():
            if isinstance(source, Speaking):
                yield from (((name, level), count) for level, count in source.messages.items())

    def source(self, name: str) -> PoolSource | None:
        """The source of this name, if there is one."""
        return self._sources.get(name)

    def invalidate(self, name: str) -> None:
        """Ask a source again before the next resolution."""
        if name in self._sources:
            self._stale.add(name)
            self._refresh()  # listeners hear of a change without asking first

    def replace(self, sources: Sequence[PoolSource]) -> None:
        """Take a new set of sources: those that are the same object go on, others end or begin."""
        wanted = {source.name: source for source in sources}
        for name, source in list(self._sources.items()):
            if wanted.get(name) is not source:
                self._offers.pop(name, None)
                self._judged.pop(name, None)
                self._problems.pop(name, None)
                self._stale.discard(name)
                if name in self._scopes:
                    self._scopes.pop(name).cancel()
        begun = [source for name, source in wanted.items() if self._sources.get(name) is not source]
        self._sources = wanted
        for source in begun:
            self._stale.add(source.name)
            self._begin(source)
        self._publish()
        self._refresh()

    def _begin(self, source: PoolSource) -> None:
        if self._tasks is not None:
            scope = self._scopes[source.name] = anyio.CancelScope()  # now: it may be replaced before its task begins
            self._tasks.start_soon(self._supervise, source, scope)

    async def _supervise(self, source: PoolSource, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await source.run(partial(self._source_changed, source))
            except Exception:
                log.exception("source %s ended", source.name)

    def _source_changed(self, source: PoolSource) -> None:
        if self._sources.get(source.name) is source:
            self.invalidate(source.name)

    def _refresh(self) -> anyio.Event:
        """The event that tells when the stale sources were asked; one flight for all who wait."""
        if self._rebuilt is not None:
            return self._rebuilt
        done = anyio.Event()
        if self._tasks is None:
            done.set()
        else:
            self._tasks.start_soon(self._rebuild, done)
            self._rebuilt = done
        return done

    async def _rebuild(self, done: anyio.Event) -> None:
        try:
            while self._stale:
                stale = [self._sources[name] for name in self._stale]
                self._stale.clear()
                async with anyio.create_task_group() as tasks:
                    for source in stale:
                        tasks.start_soon(self._ask, source, self._patience)
                self._patience = None  # a server that comes later keeps nobody waiting
                suspicious = await self._suspicious()
                self._stale |= suspicious
                if not suspicious:  # else they must be asked again first
                    self._judged = dict(self._offers)
                    self._publish()
        finally:
            self._rebuilt = None
            done.set()

    async def _ask(self, source: PoolSource, patience: float | None) -> None:
        offers: Sequence[Offer] | None = None
        problem = f"no answer within the start-up budget of {self._budget:g} s"
        if patience is not None:
            problem = f"no answer within {patience:g} s"
        self._asked.add(source.name)
        with anyio.move_on_after(self._budget if patience is None else patience):
            try:
                offers = await source.discover()
            except Unavailable as reason:
                problem = str(reason)
            except Exception:
                log.exception("source %s cannot be read", source.name)
                problem = "its answer could not be read; the log has the detail"
        self._asked.discard(source.name)
        if self._sources.get(source.name) is not source:
            return
        if offers is not None:
            self._offers[source.name] = offers
            self._problems.pop(source.name, None)
            return
        log.warning("source %s is unavailable: %s", source.name, problem)
        known = self._offers.get(source.name) or _remembered(source)
        self._offers[source.name] = [
            offer if offer.standing == "masked" else replace(offer, standing="unavailable", reason=problem, tool=None)
            for offer in known
        ]
        self._problems[source.name] = problem

    async def _suspicious(self) -> set[str]:
        """The sources that hear only now that definitions of theirs speak of the tools of others.

        Definitions may hold millions of words, so they are looked through beside the loop.
        """
        offers = [*self._builtin, *(offer for name in self._sources for offer in self._offers.get(name, ()))]
        distrusting = [source for source in self._sources.values() if isinstance(source, Distrusting)]
        if not any(offer.mentions for offer in offers):
            flagged: dict[str, dict[str, tuple[str, ...]]] = {}
        else:
            flagged = await to_thread.run_sync(mentioned, offers)
        distrusting = [source for source in distrusting if self._sources.get(source.name) is source]
        return {source.name for source in distrusting if source.distrust(flagged.get(source.name, {}))}

    def _publish(self) -> None:
        """Let agents see what there is now."""
        snapshot = self._compose(self._snapshot.revision + 1)
        if snapshot.content != self._snapshot.content:
            told = set(self._snapshot.rejected)
            for offer in snapshot.rejected:
                if offer not in told:
                    log.error("source %s: %s", offer.source, offer.reason)
            self._snapshot = snapshot
            self._changed(snapshot)

    def _compose(self, revision: int) -> PoolSnapshot:
        states = {
            name: SourceState(
                name=name,
                kind=source.kind,
                tools=len(self._judged.get(name, ())),
                problem=self._problems.get(name, "" if name in self._judged else "not asked yet"),
                notice=source.notice if isinstance(source, Noticing) else "",
                instructions=source.instructions if isinstance(source, Speaking) else "",
                takes_login=isinstance(source, Noticing) and source.takes_login,
            )
            for name, source in self._sources.items()
        }
        groups = [self._builtin, *(self._judged.get(name, ()) for name in self._sources)]
        holders = self._still_held()
        snapshot = compose(revision, groups, states, holders)
        self._holders = {
            **holders,
            **{name: offer.source for name, offer in snapshot.offers.items() if offer.standing != "masked"},
        }
        return snapshot

    def _still_held(self) -> dict[str, str]:
        """Whose each name is: its source keeps it until it is gone, or has answered without it."""
        offered = {
            name: {one.name for one in offers if one.standing != "masked"} for name, offers in self._judged.items()
        }
        return {
            name: source
            for name, source in self._holders.items()
            if source in self._sources and name in offered.get(source, (name,))
        }


def _remembered(source: PoolSource) -> Sequence[Offer]:
    """The last known tools, if even those can be told."""
    try:
        return source.last_known()
    except Exception:
        log.exception("source %s cannot say what it had", source.name)
        return ()
