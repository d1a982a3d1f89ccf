"""Counts an agent's calls in a moving window, such as 60 in any minute.

Where replicas count together, each also remembers what it let through itself. It needs that when the shared count is
gone: while the store does not answer, and for the length of a window after its counts were lost, a replica lets
through no more than its share, which is the rate divided by the number of replicas (one call at least). What it had
let through before counts too. So all of them together let through at most the rate, and at most as much again as
was counted by others before the loss.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio

from toolgrove.budgets import MovingWindow
from toolgrove.errors import LimitUnknown, RateLimited
from toolgrove.notation.rate import read_rate
from toolgrove.store.limits import LimitsAway, Quota, SharedWindows
from toolgrove.types import Call, Caller, Clock, Next, Result

log = logging.getLogger("toolgrove.call")
PATIENCE = 1.5
"""Seconds that the shared count may take to answer."""
AWAY = 2.0
"""Seconds in which a shared count that did not answer is not asked again."""


class _Limit(NamedTuple):
    agent: str
    notation: str
    window: MovingWindow
    amount: int
    seconds: float


class RateLimitStep:
    """Refuses an agent that calls too often; calls refused further in count as well.

    A sub-agent's call needs room in its own window and in that of every agent above it. It takes room in all of them,
    or in none.
    """

    def __init__(
        self, notation_of: Callable[[str], str | None], clock: Clock, shared: SharedWindows | None = None
    ) -> None:
        """With `shared`, replicas count together; while that is away, each counts reads for itself, and lets no change
        through."""
        self.faults = 0
        """How often the shared count could not be asked."""
        self._shared = shared
        self._away_until = self._lost_at = -math.inf
        self._is_away = False
        self._notation_of = notation_of
        self._limits: dict[str, _Limit] = {}
        self._clock = clock

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        caller = call.caller
        if self._shared is not None:
            return self._counted_together(call, onward, self._shared)
        if caller.depth == 0:
            limit = self._limit(caller.agent)
            if limit is not None and (wait := limit.window.admit()) is not None:
                raise _refusal(caller, limit, wait)
        else:
            self._admit(caller)
        return onward(call)

    @property
    def is_narrowed(self) -> bool:
        """Whether calls are counted by this process alone now, each limit by its share of it."""
        return self._is_away or any(self._is_lost(limit) for limit in self._limits.values())

    async def _counted_together(self, call: Call, onward: Next, shared: SharedWindows) -> Result:
        limits = [limit for agent in dict.fromkeys(call.caller.chain) if (limit := self._limit(agent)) is not None]
        quotas = {Quota(limit.agent, read_rate(limit.notation)): limit for limit in limits}
        if quotas:
            lost = [limit for limit in limits if self._is_lost(limit)]
            self._need_share(call.caller, lost, shared)
            try:
                full = await self._asked(shared, list(quotas))
            except (LimitsAway, TimeoutError):
                self.faults += 1
                if call.tool is not None and call.tool.mutates:
                    raise LimitUnknown(retry_after=AWAY) from None
                self._need_share(call.caller, limits, shared)
            else:
                if full is not None:
                    raise _refusal(call.caller, quotas[full[0]], full[1])
                self._need_share(call.caller, [limit for limit in limits if self._is_lost(limit)], shared)
            for limit in limits:
                limit.window.note()
        return await onward(call)

    def _need_share(self, caller: Caller, limits: Sequence[_Limit], shared: SharedWindows) -> None:
        """Refuse what this process has no room for in its share of the limits."""
        for limit in limits:
            wait = limit.window.wait(max(1, limit.amount // shared.replicas))
            if wait is not None:
                raise _refusal(caller, limit, wait)

    def _is_lost(self, limit: _Limit) -> bool:
        """Whether calls in the limit's window were forgotten by the shared count."""
        return self._clock.monotonic() - self._lost_at < limit.seconds

    async def _asked(self, shared: SharedWindows, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Ask the shared count, unless it was away a moment ago: nobody should wait for it at every call."""
        if self._clock.monotonic() < self._away_until:
            raise LimitsAway
        before = shared.losses
        try:
            with anyio.fail_after(PATIENCE):
                full = await shared.admit(quotas)
        except (LimitsAway, TimeoutError) as problem:
            self._away_until = self._clock.monotonic() + AWAY
            self._is_away = True
            log.warning("rate limits cannot be shared just now: %s", problem or "no answer in time")
            raise
        self._is_away = False
        if shared.losses != before:
            self._lost_at = self._clock.monotonic()
            log.warning("The store of the rate limits lost its counts; each replica lets through its share for now.")
        return full

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """While the shared count is away, ask for it meanwhile, though nobody calls."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def look(self) -> bool:
        """Ask whether the shared count answers, whoever calls; says whether calls are counted in full."""
        if self._shared is not None:
            try:
                with anyio.fail_after(PATIENCE):
                    await self._shared.admit(())
                self._is_away, self._away_until = False, -math.inf
            except (LimitsAway, TimeoutError):
                self._is_away = True
        return not self.is_narrowed

    async def _watch(self) -> None:
        while self._shared is not None:
            await anyio.sleep(AWAY)
            if self._is_away:
                await self.look()

    def _admit(self, caller: Caller) -> None:
        """Count a delegated call; an agent that stands twice in the chain pays once."""
        chain = [limit for agent in dict.fromkeys(caller.chain) if (limit := self._limit(agent)) is not None]
        for limit in chain:
            wait = limit.window.wait()
            if wait is not None:
                raise _refusal(caller, limit, wait)
        for limit in chain:
            limit.window.note()

    def _limit(self, agent: str) -> _Limit | None:
        """The agent's limit, if it has one; a changed one begins a new window."""
        notation = self._notation_of(agent)
        if notation is None:
            return None
        limit = self._limits.get(agent)
        if limit is None or limit.notation != notation:
            rate = read_rate(notation)
            window = MovingWindow(rate.amount, rate.seconds, monotonic=self._clock.monotonic)
            limit = self._limits[agent] = _Limit(agent, notation, window, rate.amount, rate.seconds)
        return limit


def _refusal(caller: Caller, limit: _Limit, wait: float) -> RateLimited:
    holder = limit.agent if limit.agent != caller.agent else None
    return RateLimited(limit=limit.notation, retry_after=max(math.ceil(wait * 1000) / 1000, 0.001), of=holder)
