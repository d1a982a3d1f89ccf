"""Counts an agent's calls in a moving window, such as 60 in any minute."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
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
        self._away_until = -math.inf
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

    async def _counted_together(self, call: Call, onward: Next, shared: SharedWindows) -> Result:
        limits = [limit for agent in dict.fromkeys(call.caller.chain) if (limit := self._limit(agent)) is not None]
        quotas = {Quota(limit.agent, read_rate(limit.notation)): limit for limit in limits}
        if quotas:
            try:
                full = await self._asked(shared, list(quotas))
            except (LimitsAway, TimeoutError):
                self.faults += 1
                if call.tool is not None and call.tool.mutates:
                    raise LimitUnknown(retry_after=AWAY) from None
                self._admit(call.caller)
            else:
                if full is not None:
                    raise _refusal(call.caller, quotas[full[0]], full[1])
        return await onward(call)

    async def _asked(self, shared: SharedWindows, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Ask the shared count, unless it was away a moment ago: nobody should wait for it at every call."""
        if self._clock.monotonic() < self._away_until:
            raise LimitsAway
        try:
            with anyio.fail_after(PATIENCE):
                return await shared.admit(quotas)
        except (LimitsAway, TimeoutError) as problem:
            self._away_until = self._clock.monotonic() + AWAY
            log.warning("rate limits cannot be shared just now: %s", problem or "no answer in time")
            raise

    def _admit(self, caller: Caller) -> None:
        """Count a delegated call; an agent that stands twice in the chain pays once."""
        chain = [limit for agent in dict.fromkeys(caller.chain) if (limit := self._limit(agent)) is not None]
        for limit in chain:
            wait = limit.window.wait()
            if wait is not None:
                raise _refusal(caller, limit, wait)
        for limit in chain:
            limit.window.admit()

    def _limit(self, agent: str) -> _Limit | None:
        """The agent's limit, if it has one; a changed one begins a new window."""
        notation = self._notation_of(agent)
        if notation is None:
            return None
        limit = self._limits.get(agent)
        if limit is None or limit.notation != notation:
            rate = read_rate(notation)
            window = MovingWindow(rate.amount, rate.seconds, monotonic=self._clock.monotonic)
            limit = self._limits[agent] = _Limit(agent, notation, window)
        return limit


def _refusal(caller: Caller, limit: _Limit, wait: float) -> RateLimited:
    holder = limit.agent if limit.agent != caller.agent else None
    return RateLimited(limit=limit.notation, retry_after=max(math.ceil(wait * 1000) / 1000, 0.001), of=holder)
