"""A call as events tell of it: what each of them says, and how it ended, to its own run and to every listener."""

from __future__ import annotations

from typing import Any

from toolgrove.events import ToolFailed, ToolSucceeded
from toolgrove.types import Call, Result


def about(call: Call, now: float) -> dict[str, Any]:
    """What every event of a call says."""
    return {"call_id": call.id, "tool": call.name, "agent": call.caller.agent, "timestamp": now}


def succeeded(call: Call, now: float, result: Result | None = None) -> ToolSucceeded:
    """It returned a result; only the stream of its own run carries it."""
    return ToolSucceeded(
        **about(call, now), receipt=call.receipt, replayed=call.replayed, duration=call.duration, result=result
    )


def failed(call: Call, now: float) -> ToolFailed:
    """It was refused, or failed."""
    return ToolFailed(**about(call, now), receipt=call.receipt, error=call.error or {}, duration=call.duration)
