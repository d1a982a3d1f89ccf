"""The ASGI app of a project: the guard at the edge, who asks, then the agents' doors and the operator's API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.http import Guard
from toolgrove.events import Event, PoolChanged
from toolgrove.web.agents import Agents
from toolgrove.web.answer import answer
from toolgrove.web.console import console_routes
from toolgrove.web.doors import Doors
from toolgrove.web.identity import Anonymous, Identified, Lookup
from toolgrove.web.live import Live
from toolgrove.web.metrics import Metrics
from toolgrove.web.openapi import openapi_routes
from toolgrove.web.operator import OperatorApi
from toolgrove.web.project import Project, agent_names


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
        self._live, metrics = Live(), Metrics(project.clock)
        self._told = (self._live.tell, metrics.tell, self._follow)
        lookup = Lookup(project.tokens, lambda: agent_names(project), project.clock)
        known = Middleware(Anonymous) if anonymous else Middleware(Identified, holder=lookup)
        self.app = Starlette(
            routes=[
                Route("/health", self._health),
                *Agents(project, self._doors).routes(),
                *OperatorApi(project, self._live, metrics).routes(),
                *openapi_routes(),
                *console_routes(),
            ],
            middleware=[
                Middleware(RequestBodyLimitMiddleware, max_body_size=DEFAULT_MAX_REQUEST_BODY_SIZE),
                Middleware(Guard, bound=host, allowed=list(allowed_hosts)),
                known,
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """The MCP endpoints to drain before the end."""
        return self._doors.endpoints

    def hang_up(self) -> None:
        """Let go of those who only watch: they would keep the server from ending."""
        self._live.close()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        for tell in self._told:
            self._project.listen(tell)
        async with self._doors.running(lambda: agent_names(self._project)):
            yield

    def _follow(self, event: Event) -> None:
        if isinstance(event, PoolChanged):
            self._doors.changed()

    async def _health(self, request: Request) -> Response:
        healthy = self._project.healthy
        return answer({"status": "ok" if healthy else "degraded"}, 200 if healthy else 503)
