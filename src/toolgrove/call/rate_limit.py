"""Counts an agent's calls in a moving window of monotonic time, so that a clock jump frees nothing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable

import limits

from toolgrove.errors import RateLimited
from toolgrove.types import Call, Clock, Next, Result


class Window:
    """The calls of one agent that still count; `limits` reads the notation, `60/minute`."""

    def __init__(self, notation: str) -> None:
        item = limits.parse(notation)
        self.notation = notation
        self.amount = item.amount
        self.seconds = item.get_expiry()
        self._calls: deque[float] = deque()

    def admit(self, now: float) -> float | None:
        """Count a call; where there is no room, the seconds to wait."""
        calls = self._calls
        while calls and calls[0] <= now - self.seconds:
            calls.popleft()
        if len(calls) >= self.amount:
            return calls[0] + self.seconds - now
        calls.append(now)
        return None


class RateLimitStep:
    """Refuses an agent that calls too often; calls refused further in count as well."""

    def __init__(self, notation_of: Callable[[str], str | None], clock: Clock) -> None:
        self._notation_of = notation_of
        self._windows: dict[str, Window] = {}
        self._clock = clock

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        notation = self._notation_of(call.caller.agent)
        if notation is not None:
            window = self._window(call.caller.agent, notation)
            wait = window.admit(self._clock.monotonic())
            if wait is not None:
                raise RateLimited(limit=window.notation, retry_after=max(math.ceil(wait * 1000) / 1000, 0.001))
        return onward(call)

    def _window(self, agent: str, notation: str) -> Window:
        window = self._windows.get(agent)
        if window is None or window.notation != notation:
            window = self._windows[agent] = Window(notation)
        return window
