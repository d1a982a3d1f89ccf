"""MCP over stdin and stdout."""

import asyncio
import contextlib
import math
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from mcp_serve.endpoint import Endpoint
from mcp_serve.signals import GRACE

MAX_LINE = 2**24
"""Bytes; a longer line arrives in parts, none of which is JSON."""


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
            line = lines.readline(MAX_LINE)
            loop.call_soon_threadsafe(received.put_nowait, line)


async def _decoded(received: asyncio.Queue[bytes]) -> AsyncIterator[str]:
    while line := await received.get():
        yield line.decode(errors="replace")
