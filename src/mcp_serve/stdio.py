"""MCP over stdin and stdout."""

import asyncio
import contextlib
import math
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from mcp_serve.diversion import diverted
from mcp_serve.endpoint import Endpoint
from mcp_serve.signals import LAST_WORDS, Stop
from mcp_serve.stderr import queued_stderr
from mcp_serve.stdio_lane import StdioLane

MAX_LINE = 2**24
"""Bytes; a longer line arrives in parts, none of which is JSON."""


async def run_stdio(
    endpoint: Endpoint, stop: Stop, answering: contextlib.AbstractAsyncContextManager[None] | None = None
) -> None:
    """Serve stdin and stdout until the peer closes them or `stop` is set; answers on their way are delivered.

    `answering` is entered once requests are answered, and left before they no longer are.
    """
    if sys.stdin is None or sys.stdout is None:
        raise RuntimeError("stdin and stdout must be open to serve over stdio")
    nothing = os.open(os.devnull, os.O_RDONLY)
    with queued_stderr(), diverted(0, nothing) as source, diverted(1, 2) as target:
        os.close(nothing)
        await _serve(endpoint, stop, answering or contextlib.nullcontext(), _Input(source), _Output(target))


async def run_lines(endpoint: Endpoint, stop: Stop, source: int, target: int) -> None:
    """The same over other descriptors, such as both of a socket; they have to block, and stay open."""
    await _serve(endpoint, stop, contextlib.nullcontext(), _Input(source), _Output(target))


async def _serve(
    endpoint: Endpoint,
    stop: Stop,
    answering: contextlib.AbstractAsyncContextManager[None],
    source: "_Input",
    target: "_Output",
) -> None:
    # All that the SDK asks of its text files is an async iterator of lines, and something to write to.
    lane = StdioLane(endpoint, target.put)
    lines: Any = source.lines(lane.takes)
    writer: Any = target
    # Unbounded, so that a finished call's answer is out of its task's hands before the input ends.
    answers, outbox = anyio.create_memory_object_stream[Any](math.inf)
    failure: Exception | None = None
    async with stdio_server(stdin=lines, stdout=writer) as (read, write):

        async def deliver() -> None:
            async with write, outbox:
                async for answer in outbox:
                    await write.send(answer)

        options = endpoint.server.create_initialization_options()
        serving = asyncio.create_task(endpoint.server.run(read, answers, options))
        serving.add_done_callback(lambda _: stop.set())
        delivering = asyncio.create_task(deliver())
        try:
            async with answering:
                try:
                    await stop.wait()
                finally:
                    stop.begin()
                    await endpoint.calls.drain(0 if serving.done() else stop.left(LAST_WORDS))
        except Exception as error:  # raised again outside of the SDK's task group, which would wrap it
            failure = error
        finally:
            await asyncio.sleep(0.05)  # the drained calls' tasks put their answers into the outbox
            source.end()
            await asyncio.gather(serving, delivering)
            await lane.finish(stop.left(LAST_WORDS / 2))
    await target.written(stop.left(LAST_WORDS / 2))
    if failure is not None:
        raise failure


class _Input:
    """Lines of a descriptor, read in a daemon thread: a peer that says nothing cannot keep the process alive."""

    def __init__(self, source: int) -> None:
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    async def lines(self, is_taken: Callable[[bytes], bool]) -> AsyncIterator[str]:
        """Each line that nobody takes before, until the peer or we end it."""
        while line := await self._received.get():
            if not is_taken(line):
                yield line.decode(errors="replace")

    def end(self) -> None:
        """Take no further line."""
        self._received.put_nowait(b"")

    def _read(self, source: int) -> None:
        line = b"\n"
        with contextlib.suppress(OSError, RuntimeError), open(source, "rb", closefd=False) as lines:
            while line:
                line = lines.readline(MAX_LINE)
                self._loop.call_soon_threadsafe(self._received.put_nowait, line)


class _Output:
    """Writes to a descriptor in a daemon thread: a peer that does not read cannot keep the process alive either."""

    def __init__(self, target: int) -> None:
        self._texts: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        threading.Thread(target=self._write, args=(target,), daemon=True).start()

    async def write(self, text: str) -> None:
        """Have it written, in its turn."""
        self.put(text)

    def put(self, text: str) -> None:
        """Have it written, in its turn."""
        self._texts.put(text)

    async def flush(self) -> None:
        """Nothing is held back."""

    async def written(self, seconds: float) -> None:
        """Take no more, and wait until the rest is out, or the time is over."""
        self._texts.put("")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _write(self, target: int) -> None:
        with contextlib.suppress(OSError):  # the peer is gone
            while text := self._texts.get():
                rest = text.encode()
                while rest:
                    rest = rest[os.write(target, rest) :]
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._ended.set)
