"""Whether the gateway lives, and whether requests should be sent to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from toolgrove.web.http_json import answer
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers
from toolgrove.web.schemas import Health, Ready

log = logging.getLogger("toolgrove.web")
SERVED = {"limits_narrowed"}
"""Troubles with which agents are served."""


class Readiness:
    """`/health` and `/ready`, for everybody."""

    def __init__(self, project: Project, is_stopping: Callable[[], bool]) -> None:
        self._project, self._is_stopping = project, is_stopping
        self._told: Sequence[str] = []

    def handlers(self) -> Handlers:
        """What answers each operation."""
        return {"health": self._health, "ready": self._ready}

    async def _health(self, request: Request) -> Health:
        return Health(status="ok" if self._project.healthy else "degraded")

    async def _ready(self, request: Request) -> Response:
        stopping: list[Literal["stopping"]] = ["stopping"] if self._is_stopping() else []
        troubles = [*self._project.troubles, *stopping]
        self._tell_of(troubles)
        is_ready = not set(troubles) - SERVED
        status: Literal["ready", "unready"] = "ready" if is_ready else "unready"
        ready = Ready(status=status, troubles=troubles, newer_file=self._project.newer_file)
        told = {key: value for key, value in ready.to_json().items() if value is not None}
        return answer(told, 200 if is_ready else 503)

    def _tell_of(self, troubles: Sequence[str]) -> None:
        """Log why a load balancer sends requests elsewhere, and that it need not any more."""
        if troubles != self._told:
            word = "not ready" if set(troubles) - SERVED else "ready, but"
            log.warning("%s", f"{word}: {', '.join(troubles)}" if troubles else "ready again")
            self._told = troubles
