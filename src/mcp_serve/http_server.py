"""Running an ASGI app on a socket until it is told to stop."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp

from mcp_serve.connections import Connections, room
from mcp_serve.signals import GRACE
from mcp_serve.uvicorn_internals import HttpServer


async def run_http(
    app: ASGIApp, drain: Callable[[float], Awaitable[None]], listening: socket.socket, stop: asyncio.Event
) -> None:
    """Serve HTTP until `stop` is set: no new connections, then the running calls end, then the streams."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so only for sockets it made
    connections = Connections(room())
    server = HttpServer(app, connections)
    serving = asyncio.create_task(server.serve(sockets=[]))
    accepting = asyncio.create_task(connections.accept(listening, server.connection))
    for task in (serving, accepting):
        task.add_done_callback(lambda _: stop.set())
    try:
        await stop.wait()
    finally:
        accepting.cancel()
        await asyncio.wait([accepting])
        listening.close()
        await drain(GRACE)
        server.should_exit = True
        await serving
