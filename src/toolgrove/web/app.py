"""The ASGI app of a project: the guard at the edge, who asks, then the agents' endpoints and the operator's API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Literal

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from mcp_serve.body_limit import BodyLimit
from mcp_serve.clear_json import ClearJson
from mcp_serve.guard import Guard, Hosts
from mcp_serve.lane import Lane
from toolgrove.events import Event, PoolChanged
from toolgrove.store.audit import AuditQuery
from toolgrove.web.access import AccessApi
from toolgrove.web.agent_endpoints import AgentEndpoints
from toolgrove.web.agents import Agents
from toolgrove.web.arrivals import Arrivals
from toolgrove.web.console import console_handlers
from toolgrove.web.entrance import Entrance
from toolgrove.web.http_json import answer
from toolgrove.web.identity import Anonymous, Identified, Lookup
from toolgrove.web.live import Live
from toolgrove.web.logins import LoginPages
from toolgrove.web.manual import manual_handlers
from toolgrove.web.metrics import Metrics
from toolgrove.web.openapi import show_document
from toolgrove.web.operator import OperatorApi
from toolgrove.web.project import Project, agent_names
from toolgrove.web.refusals import Refusals
from toolgrove.web.replica_figures import ReplicaFigures
from toolgrove.web.revocations import Revocations
from toolgrove.web.room import Room
from toolgrove.web.routing import routes
from toolgrove.web.run_log import RunLog
from toolgrove.web.runs import Runs
from toolgrove.web.schemas import Health, Ready
from toolgrove.web.slow_down import SlowDown
from toolgrove.web.sources import SourcesApi
from toolgrove.web.streams import Streams
from toolgrove.web.tool_figures import ToolFigures
from toolgrove.web.upstream_messages import UpstreamMessages

log = logging.getLogger("toolgrove.web")
LAST_WORDS = 0.3
"""Seconds that streams have to end in, and again when they were told to."""
ANSWERING = 0.6
"""Seconds of those that calls have in which the ones that were cut off are answered."""


class Gateway:
    """Joins a project, its agents' endpoints and its operator's API to one app that starts, drains and ends."""

    def __init__(
        self,
        project: Project,
        *,
        version: str,
        host: str = "127.0.0.1",
        allowed_hosts: Collection[str] = (),
        anonymous: bool = False,
    ) -> None:
        self._project = project
        self._leaving = False
        self._told: Sequence[str] = []
        self._endpoints = AgentEndpoints(project.agent, version, project.question_key, project.handoffs)
        self._live, self._runs, self._streams, metrics = (
            Live(),
            Runs(),
            Streams(),
            Metrics(
                project.clock, project.misdeeds, Room(project), UpstreamMessages(project.pool), ReplicaFigures(project)
            ),
        )
        self._traffic = metrics.traffic
        figures = ToolFigures()
        self._listeners = (self._live.publish, metrics.count, figures.count, self._follow)
        lookup = Lookup(project.tokens, lambda: agent_names(project), project.clock)
        self._revocations = None if anonymous else Revocations(lookup, self._streams, self._endpoints)
        self._refusals, self._arrivals = Refusals(project, metrics), Arrivals(project, lookup)
        hosts = Hosts(host, allowed_hosts)
        known = (
            Middleware(Anonymous)
            if anonymous
            else Middleware(
                Identified,
                holder=lookup,
                came=self._arrivals.saw,
                refused=partial(self._refusals.record, "token"),
                slow_down=SlowDown(project.clock),
            )
        )
        run_log = RunLog(lambda: project.audit_log, project.secrets.scrub, project.clock.wall)
        agents = Agents(project, self._endpoints, self._runs, self._streams, self._refusals, run_log)
        self.app = Starlette(
            routes=routes(
                {
                    "health": self._health,
                    "ready": self._ready,
                    "openapi": show_document,
                    **agents.handlers(),
                    **OperatorApi(project, self._live, metrics, self._streams, run_log, version).handlers(),
                    **SourcesApi(project, figures).handlers(),
                    **AccessApi(project, lookup.reread).handlers(),
                    **LoginPages(project).handlers(),
                    **manual_handlers(),
                    **console_handlers(),
                },
                partial(self._refusals.record, "role"),
            ),
            middleware=[
                Middleware(Guard, hosts=hosts, on_refusal=self._refusals.record),
                known,  # before the body is read: strangers must cost nothing
                Middleware(Lane, find=agents.line),
                Middleware(BodyLimit),
                Middleware(ClearJson),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False
        self.enter = Entrance(hosts, None if anonymous else lookup, self._arrivals.saw, agents.at)
        """Lets plain requests in that need not pass through the app."""

    def leave(self) -> None:
        """Say that we are about to stop, and go on serving."""
        self._leaving = True

    async def drain(self, seconds: float) -> None:
        """Let go of those who only watch, take nothing new, let the calls and runs under way end, then the streams.

        A call that does not end is cut off in time to tell its agent and the audit log what is known of it.
        """
        self._live.close()
        self._project.approvals.let_go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_off, max(0.0, seconds - ANSWERING))
            await asyncio.gather(self._runs.drain(seconds), self._endpoints.drain(seconds))
            tasks.cancel_scope.cancel()
        await self._streams.close(LAST_WORDS)

    async def _cut_off(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self._project.cut_off()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        last = await self._last_record()  # what comes after it is heard of
        for listener in self._listeners:
            self._project.listen(listener)
        async with self._endpoints.running(lambda: agent_names(self._project)), anyio.create_task_group() as tasks:
            if self._revocations is not None:
                tasks.start_soon(self._revocations.follow)
            for part in (self._refusals, self._arrivals):
                tasks.start_soon(part.follow)
            tasks.start_soon(self._recall, last)
            tasks.start_soon(self._endpoints.take_handoffs)
            yield
            await self._refusals.settle(at_the_end=True)
            tasks.cancel_scope.cancel()

    async def _last_record(self) -> int:
        with suppress(OSError):
            newest = (await self._project.audit_log.records(AuditQuery(newest=True, limit=1))).records
            return int(newest[0]["number"]) if newest else 0
        return 0

    async def _recall(self, last: int) -> None:
        """What the log cannot tell, the figures do without."""
        with suppress(OSError):
            await self._traffic.recall(self._project.audit_log, last)

    def _follow(self, event: Event) -> None:
        if isinstance(event, PoolChanged):
            self._endpoints.changed()

    async def _health(self, request: Request) -> Health:
        return Health(status="ok" if self._project.healthy else "degraded")

    async def _ready(self, request: Request) -> Response:
        stopping: list[Literal["stopping"]] = ["stopping"] if self._leaving or self._runs.draining else []
        troubles = [*self._project.troubles, *stopping]
        self._tell_of(troubles)
        ready = Ready(status="unready" if troubles else "ready", troubles=troubles, newer_file=self._project.newer_file)
        told = {key: value for key, value in ready.to_json().items() if value is not None}
        return answer(told, 503 if troubles else 200)

    def _tell_of(self, troubles: Sequence[str]) -> None:
        """Log why a load balancer sends requests elsewhere, and that it need not any more."""
        if troubles != self._told:
            log.warning("%s", f"not ready: {', '.join(troubles)}" if troubles else "ready again")
            self._told = troubles
