"""The routes of a gateway: every operation of the table, and what answers it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from toolgrove.web.access import AccessApi
from toolgrove.web.agents import Agents
from toolgrove.web.console import console_handlers
from toolgrove.web.exposition import Exposition
from toolgrove.web.logins import LoginPages
from toolgrove.web.manual import manual_handlers
from toolgrove.web.openapi import show_document
from toolgrove.web.operator import OperatorApi
from toolgrove.web.readiness import Readiness
from toolgrove.web.replica_figures import ReplicaFigures
from toolgrove.web.routing import routes
from toolgrove.web.run_log import RunLog
from toolgrove.web.sources import SourcesApi
from toolgrove.web.upstream_messages import UpstreamMessages

if TYPE_CHECKING:
    from toolgrove.web.app import Gateway


def routes_of(gateway: Gateway) -> list[BaseRoute]:
    """The routes to everything that a gateway answers."""
    project, streams, metrics = gateway.project, gateway.streams, gateway.metrics
    run_log = RunLog(lambda: project.audit_log, project.secrets.scrub, project.clock.wall)
    readiness = Readiness(project, lambda: gateway.is_stopping)
    more = (readiness.figures(), UpstreamMessages(project.pool), ReplicaFigures(project))
    exposition = Exposition(project, metrics, *more)
    agents = Agents(project, gateway.endpoints, gateway.runs, streams, gateway.refusals, run_log)
    operator = OperatorApi(project, gateway.live, metrics.traffic, exposition, streams, run_log, gateway.version)
    return routes(
        {
            "openapi": show_document,
            **readiness.handlers(),
            **agents.handlers(),
            **operator.handlers(),
            **SourcesApi(project, gateway.figures).handlers(),
            **AccessApi(project, gateway.lookup.reread).handlers(),
            **LoginPages(project).handlers(),
            **manual_handlers(),
            **console_handlers(),
        },
        partial(gateway.refusals.record, "role"),
    )
