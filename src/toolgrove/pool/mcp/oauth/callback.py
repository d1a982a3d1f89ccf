"""The address on this machine to which a browser comes back with a code; open for one login only."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import anyio

from toolgrove.pool.mcp.faults import Misconfigured

PATH = "/callback"
_HEAD = 16 * 1024
_PATIENCE = 10.0
_DONE = "Your answer has arrived; the terminal says how the login went. You can close this page."
_FAILED = "The login did not succeed. The terminal says why."
_STRANGE = "This is not the answer to a login that was begun here."


class Callback:
    """Waits for the one answer that carries our state; whatever else comes is turned away."""

    def __init__(self, port: int, state: str, issuer: str, *, names_issuer: bool) -> None:
        self.redirect = redirect_to(port)
        self._state = state
        self._issuer = issuer
        self._names_issuer = names_issuer
        self._arrived = anyio.Event()
        self._code = ""
        self._problem = ""

    async def code(self) -> str:
        """Wait for the code; Misconfigured says why there is none."""
        await self._arrived.wait()
        if self._problem:
            raise Misconfigured(self._problem)
        return self._code

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
        state = given.get("state", [])
        if len(state) != 1 or not hmac.compare_digest(state[0].encode(), self._state.encode()):
            return "400 Bad Request", _STRANGE
        if not self._arrived.is_set():
            self._problem = self._refusal(given)
            self._code = given.get("code", [""])[0]
            self._arrived.set()
        return "200 OK", _FAILED if self._problem else _DONE

    def _refusal(self, given: dict[str, list[str]]) -> str:
        if "error" in given:
            error = "".join(letter for letter in given["error"][0][:40] if letter.isascii() and letter.isprintable())
            return f"has an authorization server that refused the login ({error})"
        issuer = given.get("iss")
        if (issuer is not None or self._names_issuer) and [one.rstrip("/") for one in issuer or ()] != [
            self._issuer.rstrip("/")
        ]:
            return "was answered for by another authorization server than the one that was asked"
        if len(given.get("code", [])) != 1 or not given["code"][0]:
            return "has an authorization server that sent no code"
        return ""


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
