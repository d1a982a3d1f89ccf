"""MCP over HTTP: the routes of Streamable HTTP and of SSE. The SDK comes in with the first request that needs it."""

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from mcp_serve import sdk
from mcp_serve.calls import User
from mcp_serve.eager import Work
from mcp_serve.endpoint import Endpoint
from mcp_serve.plain import Plain

if TYPE_CHECKING:
    from mcp_serve.sdk_http import Sessions, Sse

PATH = "/mcp"


class StreamableHTTP:
    """`/mcp`: plain requests are answered here, and the SDK's sessions take all others."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._surroundings: contextvars.Context | None = None
        self._opening: asyncio.Future[Sessions] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._sessions: Sessions | None = None
        self.routes: list[BaseRoute] = [Route(PATH, self)]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the sessions of clients meanwhile."""
        self._surroundings = contextvars.copy_context()
        try:
            yield
        finally:
            self._surroundings = None
            await self._close()

    def line(self, scope: Scope) -> "StreamableHTTP | None":
        """What answers plain requests at this address."""
        return self.at(scope["path"].removeprefix(scope.get("root_path", "")))

    def at(self, path: str) -> "StreamableHTTP | None":
        """The same by the path alone."""
        return self if path == PATH else None

    def answer(self, request: Plain, user: User | None) -> Work[bytes] | None:
        """What makes the answer to a plain request; None where it must go to the SDK."""
        line = self._endpoint.line
        if line is None or request.session is None:
            return None if line is None else line.answer(request, user)
        opened = self._endpoint.sessions.get(request.session)
        if opened is None or self._sessions is None:
            return None
        return self._sessions.answer(line, opened, request, user)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sessions = self._sessions or await self._open()
        await sessions(scope, receive, send)

    async def _open(self) -> "Sessions":
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            if self._surroundings is None:
                raise RuntimeError("it serves only while it is running")
            loop = asyncio.get_running_loop()
            self._opening = loop.create_future()
            # A task of its own, not the request's: whoever opens the sessions has to close them.
            self._keeping = loop.create_task(self._keep(self._opening), context=self._surroundings)
        return await asyncio.shield(self._opening)

    async def _keep(self, opening: "asyncio.Future[Sessions]") -> None:
        try:
            await sdk.loaded()
            sessions: Sessions = sdk.http().Sessions(self._endpoint.server)
            async with sessions.running():
                self._sessions = sessions
                opening.set_result(sessions)
                await asyncio.get_running_loop().create_future()  # until it is cancelled
        except Exception as error:
            if opening.done():
                raise
            opening.set_exception(error)
        finally:
            self._sessions = None
            opening.cancel()

    async def _close(self) -> None:
        keeping, self._keeping, self._opening = self._keeping, None, None
        if keeping is None:
            return
        keeping.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([keeping])
        if not keeping.cancelled() and (failure := keeping.exception()) is not None:
            raise failure


def http_transport(name: str, endpoint: Endpoint, logger: logging.Logger) -> "StreamableHTTP | Sse":
    """The transport of this name, over the endpoint."""
    if name == "sse":
        logger.warning("SSE transport is deprecated; use streamable-http instead")
        sse: Sse = sdk.http().Sse(endpoint.server)
        return sse
    return StreamableHTTP(endpoint)
