"""How a call ended, as an event for its own run and for every listener."""

from __future__ import annotations

from typing import Any

from toolgrove.call.actor import actor
from toolgrove.call.changed import marked
from toolgrove.events import ToolFailed, ToolStarted, ToolSucceeded
from toolgrove.types import Call, Result

_CANCELLED = {
    "code": "internal",
    "message": "The call was cancelled before it ended.",
    "reason": "cancelled",
    "retryable": False,
}


def about(call: Call, now: float) -> dict[str, Any]:
    """What every event of a call says."""
    caller = call.caller
    return {
        "call_id": call.id,
        "tool": call.name,
        "chain": caller.chain,
        "run_id": call.run_id,
        "parent_call_id": caller.parent_call_id,
        "by": actor(caller),
        "timestamp": now,
    }


def started(call: Call, now: float) -> ToolStarted:
    """It is on its way."""
    return ToolStarted(**about(call, now), receipt=call.receipt)


def succeeded(call: Call, now: float, result: Result | None = None) -> ToolSucceeded:
    """A call that returned a result; only the stream of its own run carries the result itself."""
    return ToolSucceeded(
        **about(call, now), receipt=call.receipt, replayed=call.replayed, duration=call.duration, result=result
    )


def failed(call: Call, now: float, result: Result | None = None) -> ToolFailed:
    """A call that was refused or failed, with the reason; one without was cancelled.

    `result` is the tool's own word about it, which only the stream of its own run carries.
    """
    error = _CANCELLED if call.error is None else marked(call, dict(call.error))
    return ToolFailed(**about(call, now), receipt=call.receipt, error=error, duration=call.duration, result=result)
