"""Lets through only tools that the agent was given; any other looks like one that does not exist."""

from __future__ import annotations

from collections.abc import Awaitable

from toolgrove.errors import ToolNotFound
from toolgrove.types import Call, Next, Result, Tool


def is_unknown(tool: Tool) -> bool:
    """No tool is: only calls without one are refused here, and those meet every step."""
    return False


def toolset_step(call: Call, onward: Next) -> Awaitable[Result]:
    """Refuse a name outside the agent's toolset; those further in find the tool under `call.granted`."""
    if call.tool is None:
        raise ToolNotFound(call.name, call.known)
    return onward(call)
