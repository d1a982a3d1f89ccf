"""Keeps readers, and everyone in read-only mode, away from tools that change something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from toolgrove.errors import Forbidden
from toolgrove.types import Bounds, Call, Next, Result, Tool


def is_for_writers(tool: Tool) -> bool:
    """Whether not every caller may call it."""
    return tool.mutates


def role_step(call: Call, onward: Next) -> Awaitable[Result]:
    """Refuse a mutating tool to a caller who may not write."""
    if call.granted.mutates and not call.caller.may_write:
        if call.caller.read_only:
            holder = _holder(call, lambda one: one.read_only)
            raise Forbidden(
                f"{call.name} changes something, and agent {holder!r} is in read-only mode. "
                "Only read tools work here; do not retry.",
                reason="read_only",
            )
        holder = _holder(call, lambda one: one.role == "reader")
        raise Forbidden(
            f"{call.name} needs role 'editor'; agent {holder!r} has role 'reader'. "
            "Only read tools work here; do not retry.",
            reason="role",
        )
    return onward(call)


def _holder(call: Call, binds: Callable[[Bounds], bool]) -> str:
    """Whose rule it is: the agent's own, or that of one above it."""
    return next((one.agent for one in reversed(call.bounds) if binds(one)), call.caller.agent)
