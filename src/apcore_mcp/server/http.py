"""MCP over HTTP: the routes of both HTTP transports, and the health check."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext

import anyio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.guard import BODY

SLOW = 0.1


class StreamableHTTP:
    """`/mcp`. Stateless requests that want no progress are answered as plain JSON, a third faster than as a stream."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._streams = StreamableHTTPSessionManager(endpoint.server)
        self._json = StreamableHTTPSessionManager(endpoint.server, json_response=True)
        self.routes: list[BaseRoute] = [Route("/mcp", self)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._streams.run(), self._json.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        if version in HANDSHAKE_PROTOCOL_VERSIONS or b'"progressToken"' in scope.get(BODY, b""):
            await self._streams.handle_request(scope, receive, send)
        else:
            await until_disconnect(self._json.handle_request, scope, receive, send)


class Sse:
    """The deprecated transport: a stream at `/sse`, messages to `/messages/`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._server = endpoint.server
        self._messages = SseServerTransport("/messages/")
        post = Mount("/messages/", app=self._messages.handle_post_message)
        self.routes: list[BaseRoute] = [Route("/sse", self, methods=["GET"]), post]

    running = staticmethod(nullcontext)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._messages.connect_sse(scope, receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())


async def until_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Cancel a slow answer when its client goes away; the SDK watches only streams."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        cancel.cancel()

    watchers: list[asyncio.Task[None]] = []
    with anyio.CancelScope() as cancel:
        timer = asyncio.get_running_loop().call_later(SLOW, lambda: watchers.append(asyncio.create_task(watch())))
        try:
            await app(scope, receive, send)
        finally:
            timer.cancel()
            for watcher in watchers:
                watcher.cancel()


def health(count: Callable[[], int]) -> Route:
    started = time.monotonic()

    async def answer(request: Request) -> Response:
        uptime = round(time.monotonic() - started, 3)
        return JSONResponse({"status": "ok", "module_count": count(), "uptime_seconds": uptime})

    return Route("/health", answer)
