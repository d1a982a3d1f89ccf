"""What replicas cost each other, as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from toolgrove.web.project import Project


class ReplicaFigures(Collector):
    """Three counters, and how far this replica is behind."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def collect(self) -> Iterator[Metric]:
        """The figures, as the library asks for them; how far it is behind only where others write too."""
        yield CounterMetricFamily(
            "toolgrove_rate_limit_faults",
            "Calls for which the shared rate limits could not be asked.",
            value=self._project.limit_faults,
        )
        yield CounterMetricFamily(
            "toolgrove_change_reruns",
            "Changes that were run again because another replica was quicker.",
            value=self._project.change_reruns,
        )
        yield CounterMetricFamily(
            "toolgrove_store_divergences",
            "How often what stood here was not in the stored history, and was read again.",
            value=self._project.divergences,
        )
        seconds, changes = self._project.seconds_behind, self._project.changes_behind
        if seconds is not None:
            yield GaugeMetricFamily(
                "toolgrove_replica_seconds_behind",
                "Seconds since this replica last had all that the journal held.",
                max(0.0, seconds),
            )
        if changes is not None:
            yield GaugeMetricFamily(
                "toolgrove_replica_changes_behind",
                "Changes that the journal had when this replica last looked, and that it has not taken over yet.",
                changes,
            )
