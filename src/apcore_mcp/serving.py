"""The ways in: `serve`, `async_serve` and `create_app`. The only module that knows every part."""

import asyncio
import inspect
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from apcore import Executor
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware

from apcore_mcp.explorer import Explorer
from apcore_mcp.modules import Source, registry_of, watch
from apcore_mcp.options import Hook, Options, takes_options
from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.http import Guard, Sse, StreamableHTTP, health
from apcore_mcp.server.listener import RegistryListener
from apcore_mcp.server.router import ExecutionRouter
from apcore_mcp.server.transport import run_http, run_stdio, stop_on_signals
from apcore_mcp.version import __version__

logger = logging.getLogger(__name__)


class Bridge:
    """One registry behind one MCP endpoint."""

    def __init__(self, source: Source, options: Options) -> None:
        if options.log_level is not None:
            logging.basicConfig(level=options.log_level.upper())
            logging.getLogger("apcore_mcp").setLevel(options.log_level.upper())
        self.registry, self.options, self.tools = registry_of(source), options, RegistryListener()
        executor = source if isinstance(source, Executor) else Executor(self.registry)
        router = ExecutionRouter(executor, lookup=self.tools.entry, validate_inputs=options.validate_inputs)
        self.endpoint = Endpoint(options.name, options.version or __version__, self.tools, router.handle_call)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the registry, say that we started, and call the hooks around it."""
        options = self.options
        self.endpoint.loop = asyncio.get_running_loop()
        self.tools.on_change = self.endpoint.tools_changed
        self.tools.start(self.registry, options.tags, options.prefix, options.cache_schemas)
        try:
            if options.dynamic:
                watch(self.registry)
            if not self.tools.tools:
                logger.warning("No modules registered; server starting with zero tools")
            started = "apcore-mcp server started: %d tools registered, transport=%s"
            logger.info(started, len(self.tools.tools), options.transport)
            await _call(options.on_startup)
            yield
        finally:
            await _call(options.on_shutdown)
            if options.dynamic:
                self.registry.unwatch()
            self.tools.stop()

    def app(self) -> Starlette:
        options = self.options
        if options.transport == "sse":
            logger.warning("SSE transport is deprecated; use streamable-http instead")
        mcp = Sse(self.endpoint) if options.transport == "sse" else StreamableHTTP(self.endpoint)
        explorer = Explorer(self.tools, self.endpoint, options).routes() if options.explorer else []

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with self.running(), mcp.running():
                yield

        limit = Middleware(RequestBodyLimitMiddleware, max_body_size=DEFAULT_MAX_REQUEST_BODY_SIZE)
        guard = Middleware(Guard, bound=options.host, allowed=options.allowed_hosts)
        routes = [*mcp.routes, health(lambda: len(self.tools.tools)), *explorer]
        app = Starlette(routes=routes, middleware=[limit, guard], lifespan=lifespan)
        app.router.redirect_slashes = False
        return app

    async def run(self, stop: asyncio.Event) -> None:
        """Serve over the transport of the options until `stop` is set."""
        if self.options.transport == "stdio":
            async with self.running():
                await run_stdio(self.endpoint, stop)
            return
        app, address = self.app(), (self.options.host, self.options.port)
        family = socket.AF_INET6 if ":" in self.options.host else socket.AF_INET
        with socket.create_server(address, family=family, backlog=2048) as listening:
            async with app.router.lifespan_context(app):
                explorer = f", Explorer at {self.options.explorer_prefix}/" if self.options.explorer else ""
                logger.info("Listening on http://%s:%d%s", *address, explorer)
                await run_http(app, self.endpoint.drain, listening, stop)


@takes_options(Options)
def serve(registry_or_executor: Source, options: Options) -> None:
    """Serve the modules over MCP; blocks until SIGINT, SIGTERM or the end of stdin."""
    bridge, stop, loop = Bridge(registry_or_executor, options), asyncio.Event(), asyncio.new_event_loop()
    # The loop is closed without waiting for threads: a module that never returns must not hold us.
    with closing(loop), stop_on_signals(stop, loop):
        loop.run_until_complete(bridge.run(stop))
        loop.run_until_complete(loop.shutdown_asyncgens())


@takes_options(Options)
async def async_serve(registry_or_executor: Source, options: Options) -> None:
    """`serve` inside a running loop; cancel it to stop."""
    await Bridge(registry_or_executor, options).run(asyncio.Event())


@takes_options(Options)
def create_app(registry_or_executor: Source, options: Options) -> Starlette:
    """The ASGI app that `serve` would run: Streamable HTTP, or SSE if that is the transport."""
    return Bridge(registry_or_executor, options).app()


async def _call(hook: Hook | None) -> None:
    if hook is not None and inspect.isawaitable(result := hook()):
        await result
