"""How much MCP servers log by way of the protocol, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from toolgrove.pool.pool import Pool


class UpstreamMessages(Collector):
    """Messages by server and level; a server that is configured anew begins at 0."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def collect(self) -> Iterator[Metric]:
        """The counts as they are now."""
        messages = CounterMetricFamily(
            "toolgrove_upstream_messages", "Messages that MCP servers logged.", labels=("server", "level")
        )
        for labels, count in self._pool.messages():
            messages.add_metric(labels, count)
        yield messages
