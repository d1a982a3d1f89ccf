"""Whether the gateway lives, and whether requests should be sent to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from toolgrove.web.http_json import answer
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers
from toolgrove.web.schemas import Health, Ready, TroubleWord

log = logging.getLogger("toolgrove.web")
SERVED = {"limits_narrowed"}
"""Troubles with which agents are served."""


class Readiness:
    """`/health` and `/ready`, for everybody, and the same as figures."""

    def __init__(self, project: Project, is_stopping: Callable[[], bool]) -> None:
        self._project, self._is_stopping = project, is_stopping
        self._told: Sequence[str] = []

    def handlers(self) -> Handlers:
        """What answers each operation."""
        return {"health": self._health, "ready": self._ready}

    def figures(self) -> Collector:
        """What Prometheus is told of it."""
        return _Figures(self.troubles)

    def troubles(self) -> list[TroubleWord]:
        """Why not all of the work can be done now."""
        stopping: list[TroubleWord] = ["stopping"] if self._is_stopping() else []
        return [*self._project.troubles, *stopping]

    async def _health(self, request: Request) -> Health:
        return Health(status="ok" if self._project.healthy else "degraded")

    async def _ready(self, request: Request) -> Response:
        troubles = self.troubles()
        self._tell_of(troubles)
        is_ready = serves_with(troubles)
        status: Literal["ready", "unready"] = "ready" if is_ready else "unready"
        ready = Ready(status=status, troubles=troubles, newer_file=self._project.newer_file)
        told = {key: value for key, value in ready.to_json().items() if value is not None}
        return answer(told, 200 if is_ready else 503)

    def _tell_of(self, troubles: Sequence[str]) -> None:
        """Log why a load balancer sends requests elsewhere, and that it need not any more."""
        if troubles != self._told:
            word = "ready, but" if serves_with(troubles) else "not ready"
            log.warning("%s", f"{word}: {', '.join(troubles)}" if troubles else "ready again")
            self._told = troubles


def serves_with(troubles: Sequence[str]) -> bool:
    """Whether agents are served in spite of some troubles."""
    return not set(troubles) - SERVED


class _Figures(Collector):
    def __init__(self, troubles: Callable[[], Sequence[TroubleWord]]) -> None:
        self._troubles = troubles

    def collect(self) -> Iterator[Metric]:
        """Whether it is ready, and each trouble there may be, as 1 or 0."""
        found = self._troubles()
        told = "Whether requests should be sent here: 1 where /ready answers 200."
        yield GaugeMetricFamily("toolgrove_ready", told, serves_with(found))
        family = GaugeMetricFamily("toolgrove_trouble", "Whether /ready names this trouble.", labels=("trouble",))
        for word in get_args(TroubleWord):
            family.add_metric((word,), word in found)
        yield family
