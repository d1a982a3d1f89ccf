"""Counts an agent's calls in a moving window, such as 60 in any minute."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from toolgrove.budgets import MovingWindow
from toolgrove.errors import RateLimited
from toolgrove.notation.rate import read_rate
from toolgrove.types import Call, Caller, Clock, Next, Result


class _Limit(NamedTuple):
    agent: str
    notation: str
    window: MovingWindow


class RateLimitStep:
    """Refuses an agent that calls too often; calls refused further in count as well.

    A sub-agent's call needs room in its own window and in that of every agent above it. It takes room in all of them,
    or in none.
    """

    def __init__(self, notation_of: Callable[[str], str | None], clock: Clock) -> None:
        self._notation_of = notation_of
        self._limits: dict[str, _Limit] = {}
        self._clock = clock

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        caller = call.caller
        if caller.depth == 0:
            limit = self._limit(caller.agent)
            if limit is not None and (wait := limit.window.admit()) is not None:
                raise _refusal(caller, limit, wait)
        else:
            self._admit(caller)
        return onward(call)

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
