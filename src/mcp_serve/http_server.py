"""Running an ASGI app on a socket until it is told to stop."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp

from mcp_serve.connections import Connections, room
from mcp_serve.shortcut import Enter, Shortcut
from mcp_serve.signals import LAST_WORDS, Stop
from mcp_serve.uvicorn_server import HttpServer


def listen(host: str, port: int) -> socket.socket:
    """A socket on the address, of either IP version."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


async def run_http(
    app: ASGIApp,
    drain: Callable[[float], Awaitable[None]],
    listening: socket.socket,
    stop: Stop,
    answering: contextlib.AbstractAsyncContextManager[None] | None = None,
    enter: Enter | None = None,
) -> None:
    """Serve HTTP until `stop` is set: the running calls end, then the streams, all of it within the budget.

    `drain` is told how long calls have. `answering` is entered once requests are answered, and left, when the calls
    have ended, before they no longer are; without it, new connections are refused as soon as we are told to stop.
    `enter` lets in plain requests that need not pass through the app.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so only for sockets it made
    connections = Connections(room())
    server = HttpServer(app, connections, None if enter is None else Shortcut(enter))
    serving = asyncio.create_task(server.serve(sockets=[]))
    accepting = asyncio.create_task(connections.accept(listening, server.connection))
    for task in (serving, accepting):
        task.add_done_callback(lambda _: stop.set())

    async def refuse() -> None:
        accepting.cancel()
        await asyncio.wait([accepting])
        listening.close()

    try:
        async with answering or contextlib.nullcontext():
            try:
                await stop.wait()
            finally:
                stop.begin()
                if answering is None:
                    await refuse()
                await drain(stop.left(LAST_WORDS))
    finally:
        await refuse()
        await server.end(serving, stop)
