"""The ASGI app of a project: the guard at the edge, who asks, then the agents' endpoints and the operator's API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from mcp_serve.body_limit import BodyLimit
from mcp_serve.clear_json import ClearJson
from mcp_serve.guard import Guard, Hosts
from mcp_serve.lane import Lane
from toolgrove.events import Event, PoolChanged
from toolgrove.store.audit import AuditQuery
from toolgrove.web.agent_endpoints import AgentEndpoints
from toolgrove.web.agent_lines import AgentLines
from toolgrove.web.arrivals import Arrivals
from toolgrove.web.entrance import Entrance
from toolgrove.web.identity import Anonymous, Identified, Lookup
from toolgrove.web.late_routes import LateRoutes, Routed
from toolgrove.web.live import Live
from toolgrove.web.metrics import Metrics
from toolgrove.web.project import Project, agent_names
from toolgrove.web.refusals import Refusals
from toolgrove.web.revocations import Revocations
from toolgrove.web.runs import Runs
from toolgrove.web.slow_down import SlowDown
from toolgrove.web.streams import Streams
from toolgrove.web.tool_figures import ToolFigures

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
        self.project, self.version = project, version
        self._leaving = False
        self.endpoints = AgentEndpoints(project.agent, version, project.question_key, project.handoffs)
        self.live, self.runs, self.streams = Live(project.listen), Runs(), Streams()
        self.metrics, self.figures = Metrics(project.clock), ToolFigures()
        self.lookup = lookup = Lookup(project.tokens, lambda: project.config.agents, project.clock)
        self._revocations = None if anonymous else Revocations(lookup, self.streams, self.endpoints)
        self.refusals, self._arrivals = Refusals(project, self.metrics), Arrivals(project, lookup)
        hosts = Hosts(host, allowed_hosts)
        known = (
            Middleware(Anonymous)
            if anonymous
            else Middleware(
                Identified,
                holder=lookup,
                came=self._arrivals.saw,
                refused=partial(self.refusals.record, "token"),
                slow_down=SlowDown(project.clock),
            )
        )
        agents = AgentLines(self.endpoints, self.streams)
        late = LateRoutes(self._routes)
        self.load = late.load
        """Makes the routes, which the first request that needs one would do."""
        self.app = Starlette(
            middleware=[
                Middleware(Guard, hosts=hosts, on_refusal=self.refusals.record),
                known,  # before the body is read: strangers must cost nothing
                Middleware(Lane, find=agents.line),
                Middleware(BodyLimit),
                Middleware(ClearJson),
                Middleware(Routed, late=late),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes, self.app.router.routes = False, late.routes
        self.enter = Entrance(hosts, None if anonymous else lookup, self._arrivals.saw, agents.at)
        """Lets plain requests in that need not pass through the app."""

    @property
    def is_stopping(self) -> bool:
        """Whether requests should go elsewhere."""
        return self._leaving or self.runs.draining

    def leave(self) -> None:
        """Say that we are about to stop, and go on serving."""
        self._leaving = True

    async def drain(self, seconds: float) -> None:
        """Let go of those who only watch, take nothing new, let the calls and runs under way end, then the streams.

        A call that does not end is cut off in time to tell its agent and the audit log what is known of it.
        """
        self.live.close()
        self.project.approvals.let_go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_off, max(0.0, seconds - ANSWERING))
            await asyncio.gather(self.runs.drain(seconds), self.endpoints.drain(seconds))
            tasks.cancel_scope.cancel()
        await self.streams.close(LAST_WORDS)

    async def _cut_off(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.project.cut_off()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        last = await self._last_record()  # what comes after it is heard of
        self.project.listen(self._follow, PoolChanged)
        self.metrics.follow(self.project)
        self.figures.follow(self.project)
        async with self.endpoints.running(lambda: agent_names(self.project)), anyio.create_task_group() as tasks:
            if self._revocations is not None:
                tasks.start_soon(self._revocations.follow)
            for part in (self.refusals, self._arrivals, self.metrics.loop_delay):
                tasks.start_soon(part.follow)
            tasks.start_soon(self._recall, last)
            tasks.start_soon(self.endpoints.take_handoffs)
            yield
            await self.refusals.settle(at_the_end=True)
            tasks.cancel_scope.cancel()

    async def _last_record(self) -> int:
        with suppress(OSError):
            newest = (await self.project.audit_log.records(AuditQuery(newest=True, limit=1))).records
            return int(newest[0]["number"]) if newest else 0
        return 0

    async def _recall(self, last: int) -> None:
        """What the log cannot tell, the figures do without."""
        with suppress(OSError):
            await self.metrics.traffic.recall(self.project.audit_log, last)

    def _follow(self, event: Event) -> None:
        self.endpoints.changed()

    def _routes(self) -> list[BaseRoute]:
        made: list[BaseRoute] = import_module("toolgrove.web.api").routes_of(self)
        return made
