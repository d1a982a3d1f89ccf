"""The ways in: `serve`, `async_serve` and `create_app`. The only module that knows every part."""

import asyncio
import inspect
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apcore import Executor, Registry
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware

from apcore_mcp.explorer import Explorer
from apcore_mcp.modules import registry_of
from apcore_mcp.options import Hook, Options, takes_options
from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.guard import HostGuard, JsonBodies
from apcore_mcp.server.http import Sse, StreamableHTTP, health
from apcore_mcp.server.listener import RegistryListener
from apcore_mcp.server.router import ExecutionRouter
from apcore_mcp.server.transport import run_http, run_stdio, stop_on_signals
from apcore_mcp.version import __version__

logger = logging.getLogger(__name__)

Source = Registry | Executor


class Bridge:
    """One registry behind one MCP endpoint."""

    def __init__(self, source: Source, options: Options) -> None:
        self.registry = registry_of(source)
        self.options = options
        self.tools = RegistryListener()
        executor = source if isinstance(source, Executor) else Executor(self.registry)
        router = ExecutionRouter(executor, lookup=self.tools.entry, validate_inputs=options.validate_inputs)
        version = options.version or __version__
        self.endpoint = Endpoint(name=options.name, version=version, tools=self.tools, run=router.handle_call)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the registry, say that we started, and call the hooks around it."""
        options = self.options
        self.endpoint.start()
        self.tools.start(
            self.registry, options.tags, options.prefix, options.cache_schemas, self.endpoint.tools_changed
        )
        try:
            if options.dynamic:
                self._watch()
            count = len(self.tools.tools)
            if not count:
                logger.warning("No modules registered; server starting with zero tools")
            logger.info("apcore-mcp server started: %d tools registered, transport=%s", count, options.transport)
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

        middleware = [
            Middleware(HostGuard, bound=options.host, allowed=options.allowed_hosts),
            Middleware(RequestBodyLimitMiddleware, max_body_size=DEFAULT_MAX_REQUEST_BODY_SIZE),
            Middleware(JsonBodies),
        ]
        routes = [*mcp.routes, health(lambda: len(self.tools.tools)), *explorer]
        return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)

    def _watch(self) -> None:
        try:
            self.registry.watch()
        except ImportError:
            logger.warning("dynamic=True needs the watchdog package: install toolgrove[watch]")


@takes_options(Options)
def serve(registry_or_executor: Source, options: Options) -> None:
    """Serve the modules over MCP; blocks until SIGINT, SIGTERM or the end of stdin."""
    bridge = _prepare(registry_or_executor, options)
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    try:
        with stop_on_signals(stop, loop):
            loop.run_until_complete(_run(bridge, stop))
            loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()  # without waiting for threads: a module that never returns must not hold us


@takes_options(Options)
async def async_serve(registry_or_executor: Source, options: Options) -> None:
    """`serve` inside a running loop; cancel it to stop."""
    await _run(_prepare(registry_or_executor, options), asyncio.Event())


@takes_options(Options)
def create_app(registry_or_executor: Source, options: Options) -> Starlette:
    """The ASGI app that `serve` would run: Streamable HTTP, or SSE if that is the transport."""
    return _prepare(registry_or_executor, options).app()


def _prepare(source: Source, options: Options) -> Bridge:
    if options.log_level is not None:
        logging.basicConfig(level=options.log_level.upper())
        logging.getLogger("apcore_mcp").setLevel(options.log_level.upper())
    return Bridge(source, options)


async def _run(bridge: Bridge, stop: asyncio.Event) -> None:
    options = bridge.options
    if options.transport == "stdio":
        async with bridge.running():
            await run_stdio(bridge.endpoint, stop)
        return
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.create_server((options.host, options.port), family=family, backlog=2048) as listening:
        await run_http(bridge.app(), bridge.endpoint, listening, stop)


async def _call(hook: Hook | None) -> None:
    if hook is not None and inspect.isawaitable(result := hook()):
        await result
