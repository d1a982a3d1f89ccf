"""The figures in Prometheus's text format, made when somebody asks.

A scrape is answered within `PATIENCE` seconds, also while the store does not answer: that is when the figures are
needed most. What has to be asked of the store is asked in threads, one question at a time, and is left out of an answer
that it is too late for. All else is in memory. Collectors rely on `Exposition.text`, which asks before it collects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Generic, TypeVar

import anyio.to_thread
import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from toolgrove.errors import GroveError
from toolgrove.store.journal import Extent
from toolgrove.web.metrics import Count, Metrics
from toolgrove.web.project import Project

PATIENCE = 2.0
"""Seconds that a scrape waits for the store."""
T = TypeVar("T")


class Exposition:
    """What was counted, what is looked up, and `more`."""

    media_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self, project: Project, metrics: Metrics, *more: Collector) -> None:
        self._registry = prometheus.CollectorRegistry()
        self._extent = _Question(partial(_measure, project))
        self._waiting = _Question(partial(_count_waiting, project))
        room = _Room(project, lambda: self._extent.answer)
        waiting = _Waiting(project, lambda: self._waiting.answer)
        for each in (_Calls(project, metrics), room, waiting, *more, _Happenings(metrics)):
            self._registry.register(each)

    async def text(self) -> bytes:
        """All of it."""
        await asyncio.gather(self._extent.ask(), self._waiting.ask())
        return prometheus.generate_latest(self._registry)


class _Question(Generic[T]):
    """Something that a store is asked; while it has not answered, it is not asked again."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._under_way: asyncio.Future[T] | None = None
        self.answer: T | None = None
        """None where there was none in time."""

    async def ask(self) -> None:
        """Wait for an answer, but not for long."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.ensure_future(self._ask())
        asked = self._under_way
        await asyncio.wait((asked,), timeout=PATIENCE)
        self.answer = asked.result() if asked.done() else None


async def _measure(project: Project) -> Extent | None:
    try:
        return await anyio.to_thread.run_sync(project.extent, abandon_on_cancel=True)
    except OSError:
        return None


async def _count_waiting(project: Project) -> int | None:
    try:
        return len(await project.approvals.list("pending"))
    except (GroveError, OSError):
        return None


class _Room(Collector):
    """The size of the files, the number of audit records, and whether a mark of the project is passed."""

    def __init__(self, project: Project, extent: Callable[[], Extent | None]) -> None:
        """`extent` is what was measured for this scrape."""
        self._project, self._extent = project, extent

    def collect(self) -> Iterator[Metric]:
        """The figures; none of a store in memory, or of one that cannot be read now."""
        extent = self._extent()
        if extent is None:
            return
        marks = self._project.config.workspace.marks()
        yield GaugeMetricFamily("toolgrove_store_bytes", "Bytes of the store.", extent.store_bytes)
        yield GaugeMetricFamily("toolgrove_audit_archive_bytes", "Bytes of the archive.", extent.archive_bytes)
        yield GaugeMetricFamily("toolgrove_audit_records", "Audit records in the store.", extent.audit_records)
        if extent.disk_free is not None:
            yield GaugeMetricFamily("toolgrove_disk_free_bytes", "Bytes free on the store's disk.", extent.disk_free)
        passed = GaugeMetricFamily("toolgrove_mark_passed", "Whether the project's mark is passed.", labels=("mark",))
        passed.add_metric(("auditMark",), marks.audit_passed(extent))
        if extent.disk_free is not None:
            passed.add_metric(("diskMark",), marks.disk_passed(extent))
        yield passed


class _Waiting(Collector):
    """What is not settled yet."""

    def __init__(self, project: Project, approvals: Callable[[], int | None]) -> None:
        self._project, self._approvals = project, approvals

    def collect(self) -> Iterator[Metric]:
        """The calls to the outside, and the approvals if the store says."""
        calls = GaugeMetricFamily(
            "toolgrove_outside_calls",
            "Calls to the outside that are under way here (begun), and those whose outcome nobody knows (unknown).",
            labels=("state",),
        )
        calls.add_metric(("begun",), self._project.open_calls)
        calls.add_metric(("unknown",), self._project.unknown_calls)
        yield calls
        if (waiting := self._approvals()) is not None:
            yield GaugeMetricFamily("toolgrove_approvals_waiting", "Calls that wait for a person.", waiting)


class _Calls(Collector):
    def __init__(self, project: Project, metrics: Metrics) -> None:
        self._metrics, self._misdeeds = metrics, project.misdeeds

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
        yield GaugeMetricFamily(
            "toolgrove_loop_delay_seconds",
            "The longest that the event loop was late in the last minute.",
            metrics.loop_delay.longest,
        )
        told = "Requests that were refused before any call, by cause."
        yield _counter("toolgrove_refused_requests", told, metrics.refusals, "cause")


def _counter(name: str, told: str, counts: Mapping[str, Count], *label: str) -> Metric:
    family = CounterMetricFamily(name, told, labels=label)
    for value, count in counts.items():
        family.add_metric((value,) if label else (), count.value, created=count.since)
    return family
