"""uvicorn's server around our own connections."""

import asyncio
import contextlib
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_serve.connections import Connections
from mcp_serve.eager import Beginner
from mcp_serve.fair_queue import FairQueue
from mcp_serve.quick_http import QuickHttp
from mcp_serve.shortcut import Shortcut
from mcp_serve.signals import LAST_WORDS, Stop

ANSWERED_WITHIN = 1.0
"""Seconds that answers under way have to get out in, once their calls have ended; then streams are closed."""


class HttpServer(uvicorn.Server):
    """Leaves signals to others, and listening too: it serves the connections that it is given."""

    def __init__(self, app: ASGIApp, connections: Connections, shortcut: Shortcut | None = None) -> None:
        setup = uvicorn.Config(
            self._ending(app),
            interface="asgi3",
            http=QuickHttp,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
        )
        self._connections = connections
        self._shortcut = shortcut
        self._beginner = Beginner()
        self._queue = FairQueue()
        setup.load()
        super().__init__(setup)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are not the server's business."""
        yield

    async def end(self, serving: "asyncio.Task[None]", stop: Stop) -> None:
        """Let answers get out, then close what is open, then cancel what heeds neither; all of it in what is left."""
        self.should_exit = True
        await asyncio.wait([serving], timeout=min(ANSWERED_WITHIN, stop.left(LAST_WORDS * 2 / 3)))
        self._connections.close()
        await asyncio.wait([serving], timeout=min(ANSWERED_WITHIN, stop.left(LAST_WORDS / 3)))
        for request in self.server_state.tasks:
            request.cancel()
        self.force_exit = True
        await serving
        self._beginner.close()

    def _ending(self, app: ASGIApp) -> ASGIApp:
        """An app that may be cancelled at the end, which is no fault of it."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await app(scope, receive, send)
            except asyncio.CancelledError:
                if not self.should_exit:
                    raise

        return answer

    def connection(self) -> asyncio.Protocol:
        """What speaks HTTP on a new connection."""
        return QuickHttp(
            self._connections,
            self._shortcut,
            self._beginner,
            self._queue,
            self._ending,
            config=self.config,
            server_state=self.server_state,
            app_state={},
        )
