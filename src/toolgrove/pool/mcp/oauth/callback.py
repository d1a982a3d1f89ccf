"""The address on this machine to which a browser comes back with a code; open for one login only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import anyio

from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.oauth.attempt import Answer, Attempt

PATH = "/callback"
_HEAD = 16 * 1024
_PATIENCE = 10.0
_DONE = "Your answer has arrived; the terminal says how the login went. You can close this page."
_FAILED = "The login did not succeed. The terminal says why."
_STRANGE = "This is not the answer to a login that was begun here."


class Callback:
    """Waits for the one answer that carries our state; whatever else comes is turned away."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._arrived = anyio.Event()
        self._given: Answer = {}

    async def given(self) -> Answer:
        """Wait for the answer."""
        await self._arrived.wait()
        return self._given

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request of a browser."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                status, said = self._take(head.partition(b"\r\n")[0].decode("latin-1"))
                body = f"<!doctype html><meta charset=utf-8><title>Toolgrove</title><p>{said}</p>".encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):  # TimeoutError is an OSError
            return
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        method, _, rest = line.partition(" ")
        try:
            parts = urlsplit(rest.partition(" ")[0])
            given = parse_qs(parts.query, keep_blank_values=True, max_num_fields=20)
        except ValueError:
            return "400 Bad Request", _STRANGE
        if method != "GET" or parts.path != PATH:
            return "404 Not Found", _STRANGE
        if not self._attempt.is_asked_by(given):
            return "400 Bad Request", _STRANGE
        if not self._arrived.is_set():
            self._given = given
            self._arrived.set()
        try:
            self._attempt.code_in(self._given)
        except Fault:
            return "200 OK", _FAILED
        return "200 OK", _DONE


def redirect_to(port: int) -> str:
    """The address that a browser is sent back to."""
    return f"http://127.0.0.1:{port}{PATH}"


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[Callback]]]:
    """A port of this machine, and a place for the callback that answers there once it is known what to expect."""
    waiting: list[Callback] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if waiting:
            await waiting[0].answer(reader, writer)
        else:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=_HEAD)
    try:
        yield server.sockets[0].getsockname()[1], waiting
    finally:
        server.close()
