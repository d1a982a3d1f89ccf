"""Counts what happens, for Prometheus and for the console's traffic picture."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from toolgrove.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    PoolChanged,
    ToolFailed,
    ToolSucceeded,
    TreeChanged,
)
from toolgrove.types import Clock

MINUTES = 60
_REFUSALS = frozenset(("forbidden", "rate_limited", "not_found"))


class Metrics:
    """Counters that an event only increments; tool names are the pool's own, so they are bounded."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "toolgrove_calls",
            "Calls by agent, tool and outcome.",
            ("agent", "tool", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "toolgrove_call_seconds",
            "Time from the gate to the answer.",
            ("agent",),
            buckets=(0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30),
            registry=self._registry,
        )
        self._commits = Counter("toolgrove_tree_commits", "Calls that changed the tree.", registry=self._registry)
        self._approvals = Counter(
            "toolgrove_approvals", "Approvals asked for and decided.", ("state",), registry=self._registry
        )
        # Looking a label up takes longer than to count, so what was found is kept; as bounded as the labels.
        self._of_call = cache(self._calls.labels)
        self._of_agent = cache(self._seconds.labels)
        self._revision = Gauge("toolgrove_pool_revision", "The pool's revision.", registry=self._registry)
        self._minutes: deque[list[int]] = deque(maxlen=MINUTES)

    def tell(self, event: Event) -> None:
        """Count an event."""
        match event:
            case ToolSucceeded():
                self._call(event.agent, event.tool, "success", event.duration)
            case ToolFailed():
                self._call(event.agent, _known_tool(event), str(event.error["code"]), event.duration)
            case TreeChanged():
                self._commits.inc()
            case ApprovalRequested():
                self._approvals.labels("requested").inc()
            case ApprovalDecided():
                self._approvals.labels("approved" if event.approved else "rejected").inc()
            case PoolChanged():
                self._revision.set(event.revision)

    def exposition(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self._registry)

    def traffic(self) -> list[dict[str, Any]]:
        """Calls, failures and refusals of the last minutes that had any, oldest first."""
        return [
            {"minute": minute * 60, "calls": calls, "failures": failures, "refusals": refusals}
            for minute, calls, failures, refusals in self._minutes
        ]

    def _call(self, agent: str, tool: str, outcome: str, duration: float) -> None:
        self._of_call(agent, tool, outcome).inc()
        self._of_agent(agent).observe(duration)
        minute = int(self._clock.wall() // 60)
        if not self._minutes or self._minutes[-1][0] != minute:
            self._minutes.append([minute, 0, 0, 0])
        current = self._minutes[-1]
        current[1] += 1
        current[2] += outcome not in ("success", *_REFUSALS)
        current[3] += outcome in _REFUSALS


def _known_tool(event: ToolFailed) -> str:
    """The tool; empty where the call did not get as far as to find it, so that no caller can make up labels."""
    code = event.error["code"]
    return "" if code == "rate_limited" or (code == "not_found" and "tool" in event.error) else event.tool
