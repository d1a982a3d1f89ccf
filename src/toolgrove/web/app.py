"""The ASGI app of a project: the guard at the edge, who asks, then the agents' doors and the operator's API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import anyio
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolgrove.events import Event, PoolChanged
from toolgrove.web.agents import Agents
from toolgrove.web.answer import answer
from toolgrove.web.console import console_routes
from toolgrove.web.doors import Doors
from toolgrove.web.edge import Edge
from toolgrove.web.identity import Anonymous, Identified, Lookup
from toolgrove.web.live import Live
from toolgrove.web.metrics import Metrics
from toolgrove.web.openapi import openapi_routes
from toolgrove.web.operator import OperatorApi
from toolgrove.web.project import Project, agent_names
from toolgrove.web.refusals import Refusals
from toolgrove.web.revocations import Revocations
from toolgrove.web.runs import Runs
from toolgrove.web.streams import Streams

LAST_WORDS = 1.0


class Gateway:
    """A project over HTTP."""

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
        self._doors = Doors(project.agent, version)
        self._live, self._runs, self._streams, metrics = Live(), Runs(), Streams(), Metrics(project.clock)
        self._told = (self._live.tell, metrics.tell, self._follow)
        lookup = Lookup(project.tokens, lambda: agent_names(project), project.clock)
        self._revocations = None if anonymous else Revocations(lookup, self._streams, self._doors)
        known = Middleware(Anonymous) if anonymous else Middleware(Identified, holder=lookup)
        self.app = Starlette(
            routes=[
                Route("/health", self._health),
                *Agents(project, self._doors, self._runs, self._streams).routes(),
                *OperatorApi(project, self._live, metrics, self._streams).routes(),
                *openapi_routes(),
                *console_routes(),
            ],
            middleware=[
                Middleware(RequestBodyLimitMiddleware, max_body_size=DEFAULT_MAX_REQUEST_BODY_SIZE),
                Middleware(Edge, bound=host, allowed=allowed_hosts, refusals=Refusals(project)),
                known,
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    async def drain(self, seconds: float) -> None:
        """Let go of those who only watch, take nothing new, let the calls and runs under way end, then the streams."""
        self._live.close()
        calls = (endpoint.drain(seconds) for endpoint in self._doors.endpoints)
        await asyncio.gather(self._runs.drain(seconds), *calls)
        await self._streams.close(LAST_WORDS)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        for tell in self._told:
            self._project.listen(tell)
        async with self._doors.running(lambda: agent_names(self._project)), anyio.create_task_group() as tasks:
            if self._revocations is not None:
                tasks.start_soon(self._revocations.follow)
            yield
            tasks.cancel_scope.cancel()

    def _follow(self, event: Event) -> None:
        if isinstance(event, PoolChanged):
            self._doors.changed()

    async def _health(self, request: Request) -> Response:
        healthy = self._project.healthy
        return answer({"status": "ok" if healthy else "degraded"}, 200 if healthy else 503)
