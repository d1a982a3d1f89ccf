"""Leaves a durable record of a call that changes something outside before it is sent, so that a crash is noticed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from toolgrove.types import Call, Next, Result, Tool


def changes_outside(tool: Tool) -> bool:
    """Whether a call of it has an effect that we do not keep ourselves; what we keep is recorded together with it."""
    return tool.mutates and tool.kind != "builtin"


class BegunStep:
    """Right before the call leaves: whatever refuses it comes earlier."""

    def __init__(self, begin: Callable[[Call], Awaitable[None]]) -> None:
        self._begin = begin

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        return self._sent(call, onward) if changes_outside(call.granted) else onward(call)

    async def _sent(self, call: Call, onward: Next) -> Result:
        await self._begin(call)
        call.begun = True
        return await onward(call)
