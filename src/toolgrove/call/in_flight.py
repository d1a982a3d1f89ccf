"""The calls under way: a project that ends cuts them off in time to tell each agent, and the log, what is known."""

from __future__ import annotations

import asyncio

from toolgrove.errors import CutShort
from toolgrove.types import Call, Next, Result


class InFlightStep:
    """Knows which task each call runs in; once the calls were cut off, no other begins."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Call, asyncio.Task[object] | None]] = {}
        self._is_over = False

    def cut_off(self) -> None:
        """End every call under way, and let no other begin."""
        self._is_over = True
        for call, _ in self._running.values():
            call.cut_off = True
        for task in {task for _, task in self._running.values() if task is not None}:
            task.cancel()

    async def __call__(self, call: Call, onward: Next) -> Result:
        if self._is_over:
            raise CutShort(tool=call.name, sent=False)
        task = asyncio.current_task()
        self._running[call.id] = call, task
        try:
            return await onward(call)
        except asyncio.CancelledError:
            if task is None or not call.cut_off or call.caller.is_delegated:
                raise  # a sub-agent ends with the call that it works for, whose agent is told
            task.uncancel()  # not the client went away, but we do
            has_changed = call.settled or call.begun or (call.tool is not None and call.tool.mutates)
            raise CutShort(tool=call.name, sent=True, mutates=has_changed) from None
        finally:
            del self._running[call.id]
