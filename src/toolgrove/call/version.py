"""Lets one writer at a time through, with a version that is current when its turn comes."""

from __future__ import annotations

from toolgrove.call.toolset import granted
from toolgrove.types import Call, Next, Result


async def version_step(call: Call, onward: Next) -> Result:
    """Run a versioned write under its gate; anything else passes."""
    tool = granted(call)
    if tool.gate is None or not (tool.mutates or "versionToken" in call.arguments):
        return await onward(call)
    async with tool.gate.writing(call):
        return await onward(call)
