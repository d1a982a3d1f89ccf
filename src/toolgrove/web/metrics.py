"""Counts what happens, for Prometheus and for the console's traffic picture."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from toolgrove.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    PoolChanged,
    ToolFailed,
    ToolSucceeded,
    TreeChanged,
)
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.store.audit import outcome_of
from toolgrove.types import Clock
from toolgrove.web.traffic import Traffic

_BOUNDS = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


@dataclass(slots=True)
class _Times:
    """How many calls took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        bounds = (*(f"{bound:g}" for bound in _BOUNDS), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


class Metrics(Collector):
    """Counts that a call only adds to; tool names are the pool's own, so they are bounded.

    The library's own counters take as long as half of the gate, so calls are counted here and handed to it when
    somebody asks.
    """

    media_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self, clock: Clock, misdeeds: Misdeeds, *more: Collector) -> None:
        self.traffic = Traffic(clock)
        self._misdeeds = misdeeds
        self._registry = prometheus.CollectorRegistry()
        for each in (self, *more):
            self._registry.register(each)
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._times: defaultdict[str, _Times] = defaultdict(_Times)
        self._commits = prometheus.Counter(
            "toolgrove_tree_commits", "Calls that changed the tree.", registry=self._registry
        )
        self._approvals = prometheus.Counter(
            "toolgrove_approvals", "Approvals asked for and decided.", ("state",), registry=self._registry
        )
        self._revision = prometheus.Gauge("toolgrove_pool_revision", "The pool's revision.", registry=self._registry)
        self._refusals = prometheus.Counter(
            "toolgrove_refused_requests",
            "Requests that were refused before any call, by cause.",
            ("cause",),
            registry=self._registry,
        )

    def collect(self) -> Iterator[Metric]:
        """The calls and the misdeeds, as the library asks for them."""
        calls = CounterMetricFamily(
            "toolgrove_calls", "Calls by agent, tool and outcome.", labels=("agent", "tool", "outcome")
        )
        for labels, count in self._calls.items():
            calls.add_metric(labels, count)
        yield calls
        seconds = HistogramMetricFamily(
            "toolgrove_call_seconds", "Time from the gate to the answer.", labels=("agent",)
        )
        for agent, times in self._times.items():
            seconds.add_metric((agent,), times.buckets(), times.total)
        yield seconds
        misdeeds = CounterMetricFamily(
            "toolgrove_upstream_misdeeds", "What MCP servers do against the protocol.", labels=("server", "kind")
        )
        for who, count in self._misdeeds.counts():
            misdeeds.add_metric(who, count)
        yield misdeeds

    def count(self, event: Event) -> None:
        """Add an event to the figures it concerns."""
        match event:
            case ToolSucceeded():
                self._call(event.agent, event.tool, "success", event.duration)
                self.traffic.add(event.agent, "success", event.duration)
            case ToolFailed():
                outcome = outcome_of(event.error)
                told = outcome if outcome in ("waiting", "cancelled") else str(event.error["code"])
                self._call(event.agent, _known_tool(event), told, event.duration)
                self.traffic.add(event.agent, outcome, event.duration)
            case TreeChanged(elsewhere=None):
                self._commits.inc()
            case ApprovalRequested():
                self._approvals.labels("requested").inc()
            case ApprovalDecided():
                self._approvals.labels("approved" if event.approved else "rejected").inc()
            case PoolChanged():
                self._revision.set(event.revision)

    def refused(self, cause: str) -> None:
        """A request was refused at the edge."""
        self._refusals.labels(cause).inc()

    def exposition(self) -> bytes:
        """All of it in Prometheus's text format."""
        return prometheus.generate_latest(self._registry)

    def _call(self, agent: str, tool: str, outcome: str, duration: float) -> None:
        self._calls[agent, tool, outcome] += 1
        self._times[agent].add(duration)


def _known_tool(event: ToolFailed) -> str:
    """The tool; empty where the call never got to it, so that no caller can make up labels."""
    code = event.error["code"]
    return "" if code == "rate_limited" or (code == "not_found" and "tool" in event.error) else event.tool
