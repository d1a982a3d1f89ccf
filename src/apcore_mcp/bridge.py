"""The bridge: one registry behind one MCP endpoint. The only module that knows every part."""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from apcore import Executor
from starlette.applications import Starlette
from starlette.middleware import Middleware

from apcore_files.watching import following
from apcore_mcp.explorer import Explorer
from apcore_mcp.modules import Source, registry_of
from apcore_mcp.options import Options
from apcore_mcp.server.health import health
from apcore_mcp.server.listener import RegistryListener
from apcore_mcp.server.router import ExecutionRouter
from apcore_mcp.version import __version__
from mcp_serve.body_limit import BodyLimit
from mcp_serve.clear_json import ClearJson
from mcp_serve.endpoint import Endpoint
from mcp_serve.guard import Guard, Hosts, is_loopback
from mcp_serve.hooks import hooks
from mcp_serve.http import http_transport
from mcp_serve.http_server import listen, run_http
from mcp_serve.lane import Lane
from mcp_serve.shortcut import everybody
from mcp_serve.signals import Stop
from mcp_serve.stdio import run_stdio

logger = logging.getLogger(__name__)
BEYOND_LOOPBACK = (
    "ANYBODY WHO REACHES %s CAN CALL EVERY TOOL%s: the bridge asks nobody who they are. Serve 127.0.0.1, or put it "
    "behind something that does."
)


class Bridge:
    """One registry, its table of tools and the endpoint that serves them."""

    def __init__(self, source: Source, options: Options) -> None:
        if options.log_level is not None:
            logging.basicConfig(level=options.log_level.upper())
            logging.getLogger("apcore_mcp").setLevel(options.log_level.upper())
        self.options = options
        self.registry = registry_of(source)
        self.tools = RegistryListener()
        executor = source if isinstance(source, Executor) else Executor(self.registry)
        router = ExecutionRouter(executor, lookup=self.tools.entry, validate_inputs=options.validate_inputs)
        version = options.version or __version__
        self.endpoint = Endpoint(options.name, version, self.tools, router.handle_call, logger=logger)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the registry, and say that we started."""
        options = self.options
        self.tools.on_change = self.endpoint.tools_changed
        self.tools.start(self.registry, options.tags, options.prefix, options.cache_schemas)
        try:
            with following(self.registry) if options.dynamic else nullcontext():
                count = len(self.tools.tools)
                if count == 0:
                    logger.warning("No modules registered; server starting with zero tools")
                logger.info("apcore-mcp server started: %d tools registered, transport=%s", count, options.transport)
                yield
        finally:
            self.tools.stop()

    def hooks(self, stop: Stop) -> AbstractAsyncContextManager[None]:
        """Calls the hooks of the options, the last of them before the budget is used up."""
        return hooks(self.options.on_startup, self.options.on_shutdown, stop)

    def app(self, *, calls_hooks: bool = True) -> Starlette:
        """The ASGI app: MCP, the health check and, if wanted, the Explorer; its lifespan calls the hooks."""
        options, hosts = self.options, Hosts(self.options.host, self.options.allowed_hosts)
        mcp = http_transport(options.transport, self.endpoint, logger)
        self.enter = everybody(hosts, mcp.at)
        routes = [*mcp.routes, health(self._count)]
        if options.explorer:
            routes += Explorer(self.tools, self.endpoint, options).routes()

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with self.running(), mcp.running(), self.hooks(Stop()) if calls_hooks else nullcontext():
                yield

        middleware = [
            Middleware(Guard, hosts=hosts, open_paths=["/health"]),
            Middleware(Lane, find=mcp.line),
            Middleware(BodyLimit),
            Middleware(ClearJson),
        ]
        app = Starlette(routes=routes, middleware=middleware, lifespan=lifespan)
        app.router.redirect_slashes = False
        return app

    async def run(self, stop: Stop) -> None:
        """Serve over the transport of the options until `stop` is set."""
        if self.options.transport == "stdio":
            async with self.running():
                await run_stdio(self.endpoint, stop, self.hooks(stop))
        else:
            await self._run_http(stop)

    async def _run_http(self, stop: Stop) -> None:
        options = self.options
        app = self.app(calls_hooks=False)  # but while it answers
        with listen(options.host, options.port) as listening:
            async with app.router.lifespan_context(app):
                explorer = f", Explorer at {options.explorer_prefix}/" if options.explorer else ""
                logger.info("Listening on http://%s:%d%s", options.host, options.port, explorer)
                if not is_loopback(options.host):
                    logger.warning(BEYOND_LOOPBACK, options.host, " and the Explorer" if options.explorer else "")
                await run_http(app, self.endpoint.drain, listening, stop, self.hooks(stop), self.enter)

    def _count(self) -> int:
        return len(self.tools.tools)
