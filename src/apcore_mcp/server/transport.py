"""Running a server until it is told to stop: over stdio, or as an HTTP server."""

import asyncio
import contextlib
import math
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apcore_mcp.server.endpoint import Endpoint

# Seconds, then bytes on the wire; what a body may say is limited further in.
GRACE, READ_WITHIN, MAX_HEAD, MAX_BODY = 5.0, 30.0, 2**16, 2**24
_UPGRADE = re.compile(rb"\nupgrade:", re.IGNORECASE)


async def run_stdio(endpoint: Endpoint, stop: asyncio.Event) -> None:
    """Serve stdin and stdout until the peer closes them or `stop` is set; answers on their way are delivered."""
    if sys.stdin is None or sys.stdout is None:
        raise RuntimeError("stdin and stdout must be open to serve over stdio")
    if sys.stderr is not None and not sys.stderr.isatty():
        os.set_blocking(2, False)  # log lines that the peer does not read are lost instead of stopping us
    received: asyncio.Queue[bytes] = asyncio.Queue()
    lines: Any = _decoded(received)  # an async iterator of lines is all that the SDK asks of a text file
    # Unbounded, so that a finished call's answer is out of its task's hands before the input ends.
    answers, outbox = anyio.create_memory_object_stream[Any](math.inf)
    with diverted(0, os.open(os.devnull, os.O_RDONLY)) as source:
        threading.Thread(target=_read_lines, args=(source, received, asyncio.get_running_loop()), daemon=True).start()
        async with stdio_server(stdin=lines) as (read, write):

            async def deliver() -> None:
                async with write, outbox:
                    async for answer in outbox:
                        await write.send(answer)

            options = endpoint.server.create_initialization_options()
            serving = asyncio.create_task(endpoint.server.run(read, answers, options))
            serving.add_done_callback(lambda _: stop.set())
            delivering = asyncio.create_task(deliver())
            try:
                await stop.wait()
            finally:
                await endpoint.calls.drain(0 if serving.done() else GRACE)
                await asyncio.sleep(0.05)  # the drained calls' tasks put their answers into the outbox
                received.put_nowait(b"")
                await asyncio.gather(serving, delivering)


@contextlib.contextmanager
def diverted(fd: int, elsewhere: int) -> Iterator[int]:
    """Let a standard stream lead elsewhere for a while; its real end has another descriptor meanwhile."""
    private = os.dup(fd)
    os.dup2(elsewhere, fd)
    try:
        yield private
    finally:
        os.dup2(private, fd)


def _read_lines(source: int, received: asyncio.Queue[bytes], loop: asyncio.AbstractEventLoop) -> None:
    """Runs in a daemon thread: a peer that says nothing cannot keep the process alive."""
    line = b"\n"
    with contextlib.suppress(OSError, RuntimeError), open(source, "rb", closefd=False) as lines:
        while line:
            line = lines.readline(16 * 1024 * 1024)  # a longer one arrives in parts, none of which is JSON
            loop.call_soon_threadsafe(received.put_nowait, line)


async def _decoded(received: asyncio.Queue[bytes]) -> AsyncIterator[str]:
    while line := await received.get():
        yield line.decode(errors="replace")


async def run_http(app: Any, drain: Callable[[float], Any], listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve HTTP until `stop` is set: no new connections, then the running calls end, then the streams."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so only for sockets it made
    setup = uvicorn.Config(app, http=_Impatient, log_config=None, access_log=False, lifespan="off", server_header=False)
    setup.timeout_graceful_shutdown = 2
    server = uvicorn.Server(setup)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # signals are ours
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    serving.add_done_callback(lambda _: stop.set())
    try:
        await stop.wait()
    finally:
        for accepting in getattr(server, "servers", ()):
            accepting.close()
        await drain(GRACE)
        server.should_exit = True
        await serving


class _Impatient(HttpToolsProtocol):
    """Closes a connection whose request does not arrive in time, or is endless; offers no other protocol."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadline, self._room = self.loop.call_later(READ_WITHIN, transport.close), MAX_HEAD

    def data_received(self, data: bytes) -> None:
        if self._deadline.cancelled():
            self._deadline = self.loop.call_later(READ_WITHIN, self.transport.close)
        self._room -= len(data)
        super().data_received(_UPGRADE.sub(b"\nx-grade:", data))  # with an upgrade the parser drops the body
        if self._room < 0 and not self.transport.is_closing():
            self.send_400_response("The request is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.rstrip(b" \t"))  # the parser does so on the left only

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._room, self.headers = MAX_BODY, []  # trailers are not for the app

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._room = MAX_HEAD
        self._deadline.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)


@contextlib.contextmanager
def stop_on_signals(stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The first SIGINT or SIGTERM stops gracefully; the next one ends the process at once."""
    signals = (signal.SIGINT, signal.SIGTERM)

    def on_signal(*_: Any) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    ours = threading.current_thread() is threading.main_thread()  # elsewhere, whoever owns the signals stops us
    before = {each: signal.signal(each, on_signal) for each in signals if ours}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
