"""MCP over HTTP: the routes of Streamable HTTP and of SSE."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Message, Receive, Scope, Send

from mcp_serve.clear_json import BODY
from mcp_serve.endpoint import Endpoint
from mcp_serve.sdk_internals import owned

WATCH_AFTER = 0.1
"""Seconds within which most requests are answered; watching their connections would be wasted work."""
IDLE = 1800.0
"""Seconds without a request after which a session of the older eras ends."""
T = TypeVar("T")


class StreamableHTTP:
    """`/mcp`. Stateless requests that want no progress are answered as plain JSON, a third faster than as a stream."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._streams = StreamableHTTPSessionManager(endpoint.server, session_idle_timeout=IDLE)
        self._json = StreamableHTTPSessionManager(endpoint.server, json_response=True)
        self.routes: list[BaseRoute] = [Route("/mcp", self)]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the sessions of clients meanwhile."""
        failure: Exception | None = None
        async with self._streams.run(), self._json.run():
            try:
                yield
            except Exception as error:  # raised again outside of the SDK's task groups, which would wrap it
                failure = error
        if failure is not None:
            raise failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        if version in HANDSHAKE_PROTOCOL_VERSIONS or b'"progressToken"' in scope.get(BODY, b""):
            await self._streams.handle_request(owned(scope), receive, send)
            return
        is_answered = False

        async def noted(message: Message) -> None:
            nonlocal is_answered
            is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await unless_gone(receive, self._json.handle_request(scope, receive, noted), lambda: is_answered)


class Sse:
    """The deprecated transport: a stream at `/sse`, messages to `/messages/`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._server = endpoint.server
        self._messages = SseServerTransport("/messages/")
        self.routes: list[BaseRoute] = [
            Route("/sse", self, methods=["GET"]),
            Mount("/messages/", app=self._receive_message),
        ]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """There is nothing to keep: a session lives as long as its stream."""
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._messages.connect_sse(owned(scope), receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    async def _receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._messages.handle_post_message(owned(scope), receive, send)


def http_transport(name: str, endpoint: Endpoint, logger: logging.Logger) -> StreamableHTTP | Sse:
    """The transport of this name, over the endpoint."""
    if name == "sse":
        logger.warning("SSE transport is deprecated; use streamable-http instead")
        return Sse(endpoint)
    return StreamableHTTP(endpoint)


def _unanswered() -> bool:
    return False


async def unless_gone(receive: Receive, work: Awaitable[T], is_answered: Callable[[], bool] = _unanswered) -> T | None:
    """The result of the work, or None once its client went away; the SDK watches only streams.

    An answered request looks like a lost one, so work that answers must say so: what it does afterwards is its own.
    """
    request = asyncio.current_task()
    if request is None:
        raise RuntimeError("a request is answered in a task")
    watcher: asyncio.Task[None] | None = None
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        if not is_answered():
            is_gone = True
            request.cancel()

    def start() -> None:
        nonlocal watcher
        watcher = asyncio.create_task(watch())

    timer = asyncio.get_running_loop().call_later(WATCH_AFTER, start)
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and request.uncancel() == 0:
            return None
        raise
    finally:
        timer.cancel()
        if watcher is not None:
            watcher.cancel()
