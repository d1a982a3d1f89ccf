"""Lets one writer at a time through, with a version that is current when its turn comes."""

from __future__ import annotations

from collections.abc import Awaitable

from toolgrove.call.toolset import granted
from toolgrove.types import Call, Next, Result, WriteGate


def version_step(call: Call, onward: Next) -> Awaitable[Result]:
    """Run a versioned write under its gate; anything else passes."""
    tool = granted(call)
    if tool.gate is None or not (tool.mutates or "versionToken" in call.arguments):
        return onward(call)
    return _under(tool.gate, call, onward)


async def _under(gate: WriteGate, call: Call, onward: Next) -> Result:
    await gate.enter(call)
    try:
        return await onward(call)
    finally:
        gate.leave(call)
