"""Keeps readers, and everyone in read-only mode, away from tools that change something."""

from __future__ import annotations

from collections.abc import Awaitable

from toolgrove.call.toolset import granted
from toolgrove.errors import Forbidden
from toolgrove.types import Call, Next, Result


def role_step(call: Call, onward: Next) -> Awaitable[Result]:
    """Refuse a mutating tool to a caller who may not write."""
    caller = call.caller
    if granted(call).mutates and not caller.may_write:
        if caller.read_only:
            raise Forbidden(
                f"{call.name} changes something, and agent {caller.agent!r} is in read-only mode. "
                "Only read tools work here; do not retry.",
                reason="read_only",
            )
        raise Forbidden(
            f"{call.name} needs role 'editor'; agent {caller.agent!r} has role {caller.role!r}. "
            "Only read tools work here; do not retry.",
            reason="role",
        )
    return onward(call)
