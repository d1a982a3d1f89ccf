"""How a call ended, as the event that its own run and every listener hear."""

from __future__ import annotations

from toolgrove.events import ToolFailed, ToolSucceeded
from toolgrove.types import Call, Result


def succeeded(call: Call, now: float, result: Result | None = None) -> ToolSucceeded:
    """It returned a result; only the stream of its own run carries it."""
    return ToolSucceeded(
        call_id=call.id,
        tool=call.name,
        agent=call.caller.agent,
        timestamp=now,
        receipt=call.receipt,
        replayed=call.replayed,
        duration=call.duration,
        result=result,
    )


def failed(call: Call, now: float) -> ToolFailed:
    """It was refused, or failed."""
    return ToolFailed(
        call_id=call.id,
        tool=call.name,
        agent=call.caller.agent,
        timestamp=now,
        receipt=call.receipt,
        error=call.error or {},
        duration=call.duration,
    )
