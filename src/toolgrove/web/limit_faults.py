"""How often the rate limits that replicas share could not be asked, as a metric."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from toolgrove.web.project import Project


class LimitFaults(Collector):
    """One counter."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def collect(self) -> Iterator[Metric]:
        """The counter, as the library asks for it."""
        yield CounterMetricFamily(
            "toolgrove_rate_limit_faults",
            "Calls for which the shared rate limits could not be asked.",
            value=self._project.limit_faults,
        )
