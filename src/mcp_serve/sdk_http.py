"""What the SDK serves over HTTP: sessions and streams, and the deprecated SSE."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Message, Receive, Scope, Send

from mcp_serve import sdk_server as sdk_server  # whoever waits for the SDK waits for this one too
from mcp_serve.calls import User
from mcp_serve.clear_json import BODY
from mcp_serve.eager import Work
from mcp_serve.line import Line
from mcp_serve.log_levels import hearing_of
from mcp_serve.plain import Plain
from mcp_serve.presence import unless_gone
from mcp_serve.protocol import HANDSHAKE
from mcp_serve.sdk_internals import in_use, owned, transport_of
from mcp_serve.sessions import OpenSession
from mcp_serve.under_way import Stopped, UnderWay
from mcp_serve.wire import cancelled

IDLE = 1800.0
"""Seconds without a request after which a session of the older eras ends."""


class Sessions:
    """Those of one server. Stateless requests that want no progress are answered as plain JSON, not as a stream."""

    def __init__(self, server: Server[Any]) -> None:
        self._streams = StreamableHTTPSessionManager(server, session_idle_timeout=IDLE)
        self._json = StreamableHTTPSessionManager(server, json_response=True)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep them meanwhile."""
        async with self._streams.run(), self._json.run():
            yield

    def answer(self, line: Line, opened: OpenSession, request: Plain, user: User | None) -> Work[bytes] | None:
        """What makes the answer to a plain request within a session; None where it must go to the SDK."""
        transport = transport_of(self._streams, request.session or "")
        if transport is None or not opened.is_plain or request.id in opened.under_way:
            return None
        if opened.owner != (None if user is None else user.id):  # the SDK answers as if there were no such session
            return None
        hearing = None if request.say is None else hearing_of(opened.session, request.say)
        answer = line.answer(request._replace(can_answer=opened.can_answer, hearing=hearing), user)
        return None if answer is None else partial(_in_session, transport, opened.under_way, request, answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get("mcp-protocol-version", HANDSHAKE[0])
        if version in HANDSHAKE or _wants_words(scope.get(BODY, b"")):
            await self._streams.handle_request(owned(scope), receive, send)
            return
        is_answered = False

        async def noted(message: Message) -> None:
            nonlocal is_answered
            is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await unless_gone(receive, self._json.handle_request(scope, receive, noted), lambda: is_answered)


async def _in_session(
    transport: StreamableHTTPServerTransport, under_way: UnderWay, request: Plain, answer: Work[bytes]
) -> bytes:
    """The answer to a request within a session; raises Stopped where that ends first."""
    with in_use(transport, IDLE):
        try:
            return await under_way.follow(request.id, answer())
        except Stopped as stopped:
            if stopped.why == "ended":
                raise
            return cancelled(request)


def _wants_words(body: bytes) -> bool:
    """Whether a request asks for words before its answer: its progress, or its log."""
    return b'"progressToken"' in body or b'logLevel"' in body


class Sse:
    """The deprecated transport: a stream at `/sse`, messages to `/messages/`."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._messages = SseServerTransport("/messages/")
        self.routes: list[BaseRoute] = [
            Route("/sse", self, methods=["GET"]),
            Mount("/messages/", app=self._receive_message),
        ]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """There is nothing to keep: a session lives as long as its stream."""
        yield

    def line(self, scope: Scope) -> None:
        """Nothing is plain here: every answer comes by the stream."""

    def at(self, path: str) -> None:
        """Nor at any other path."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._messages.connect_sse(owned(scope), receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    async def _receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._messages.handle_post_message(owned(scope), receive, send)
