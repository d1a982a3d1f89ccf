"""The figures in Prometheus's text format, made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.web.metrics import Count, Metrics


class Exposition:
    """What was counted, and `more`, which is looked up."""

    media_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self, metrics: Metrics, misdeeds: Misdeeds, *more: Collector) -> None:
        self._registry = prometheus.CollectorRegistry()
        for each in (_Calls(metrics, misdeeds), *more, _Happenings(metrics)):
            self._registry.register(each)

    def text(self) -> bytes:
        """All of it."""
        return prometheus.generate_latest(self._registry)


class _Calls(Collector):
    def __init__(self, metrics: Metrics, misdeeds: Misdeeds) -> None:
        self._metrics, self._misdeeds = metrics, misdeeds

    def collect(self) -> Iterator[Metric]:
        """The calls and the misdeeds, as the library asks for them."""
        calls = CounterMetricFamily(
            "toolgrove_calls", "Calls by agent, tool and outcome.", labels=("agent", "tool", "outcome")
        )
        for labels, count in self._metrics.calls.items():
            calls.add_metric(labels, count)
        yield calls
        seconds = HistogramMetricFamily(
            "toolgrove_call_seconds", "Time from the gate to the answer.", labels=("agent",)
        )
        for agent, times in self._metrics.times.items():
            seconds.add_metric((agent,), times.buckets(), times.total)
        yield seconds
        misdeeds = CounterMetricFamily(
            "toolgrove_upstream_misdeeds", "What MCP servers do against the protocol.", labels=("server", "kind")
        )
        for who, count in self._misdeeds.counts():
            misdeeds.add_metric(who, count)
        yield misdeeds


class _Happenings(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """What happened besides."""
        metrics = self._metrics
        yield _counter("toolgrove_tree_commits", "Calls that changed the tree.", {"": metrics.commits})
        yield _counter("toolgrove_approvals", "Approvals asked for and decided.", metrics.approvals, "state")
        yield GaugeMetricFamily("toolgrove_pool_revision", "The pool's revision.", metrics.revision)
        told = "Requests that were refused before any call, by cause."
        yield _counter("toolgrove_refused_requests", told, metrics.refusals, "cause")


def _counter(name: str, told: str, counts: Mapping[str, Count], *label: str) -> Metric:
    family = CounterMetricFamily(name, told, labels=label)
    for value, count in counts.items():
        family.add_metric((value,) if label else (), count.value, created=count.since)
    return family
