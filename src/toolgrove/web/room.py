"""How much room the store takes, for Prometheus: measured when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from toolgrove.web.project import Project


class Room(Collector):
    """The size of the files, the number of audit records, and whether a mark of the project is passed."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def collect(self) -> Iterator[Metric]:
        """The figures; none of a store in memory, or of one that cannot be read now."""
        try:
            extent = self._project.extent()
        except OSError:
            return
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
