"""Sends a request and reads its answer: bounded in size, following redirects only where they stay at home."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urljoin

import anyio
import httpcore2
from httpcore2 import URL, AsyncConnectionPool

from toolgrove.errors import UpstreamFailed
from toolgrove.pool.http.dialer import Dialer
from toolgrove.pool.http.inflate import BodyTooLarge, Garbled, inflate
from toolgrove.pool.http.operation import SAFE_METHODS
from toolgrove.pool.http.request import HttpRequest
from toolgrove.pool.http.url import BadUrl, Origin, split_origin

MAX_HOPS = 3
CONNECTIONS = 16
_IDLE = 15.0
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TARGET = re.compile(r"/(?:[!-~](?<!\\))*")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """What came back; header names are lower-case, the body is decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class SourceConnections:
    """The connections of one source: kept while it runs, closed after each call otherwise."""

    def __init__(self, dialer: Dialer, tls: Callable[[], ssl.SSLContext]) -> None:
        self._dialer = dialer
        self._tls = tls
        self._keeping = False
        self._kept: AsyncConnectionPool | None = None
        self._users: dict[AsyncConnectionPool, int] = {}

    async def keep(self) -> None:
        """Keep idle connections until cancelled; calls that are still under way end by themselves."""
        self._keeping = True
        try:
            await anyio.sleep_forever()
        finally:
            self._keeping = False
            kept, self._kept = self._kept, None
            if kept is not None:
                await self._leave(kept)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[AsyncConnectionPool]:
        """The connections for one call."""
        pool = self._kept or self._open()
        self._users[pool] += 1
        try:
            yield pool
        finally:
            await self._leave(pool)

    def _open(self) -> AsyncConnectionPool:
        pool = AsyncConnectionPool(
            ssl_context=self._tls(), max_connections=CONNECTIONS, keepalive_expiry=_IDLE, network_backend=self._dialer
        )
        self._users[pool] = 0
        if self._keeping:
            self._kept = pool
            self._users[pool] = 1
        return pool

    async def _leave(self, pool: AsyncConnectionPool) -> None:
        self._users[pool] -= 1
        if not self._users[pool]:
            del self._users[pool]
            with anyio.CancelScope(shield=True):
                await pool.aclose()


class _BrokenOff(Exception):
    """The answer began and did not arrive whole."""


async def exchange(
    connections: SourceConnections, request: HttpRequest, *, tool: str, max_bytes: int, mutates: bool
) -> HttpAnswer:
    """The answer to a request, after at most a few redirects on the same origin."""
    safe = request.method in SAFE_METHODS
    doubt = "Whether it took effect is unknown: look before you repeat it." if mutates else "Try again later."
    try:
        async with connections.borrow() as pool:
            for _ in range(MAX_HOPS + 1):
                answer = await _send(pool, request, max_bytes)
                if answer.status not in _REDIRECTS:
                    return answer
                request = _redirected(request, answer, tool, follow=safe)
    except BodyTooLarge:
        raise UpstreamFailed(
            f"The answer to {tool} is larger than {max_bytes} bytes and was not read. "
            + (f"{doubt} " if mutates else "Ask for less, for instance a page. ")
            + "The operator can raise maxBytes.",
            reason="too_large",
            limit=max_bytes,
        ) from None
    except (Garbled, httpcore2.ProtocolError):
        advice = f"{doubt} Tell the operator." if mutates else "Tell the operator; do not retry."
        raise UpstreamFailed(
            f"The server of {tool} does not answer in proper HTTP. {advice}", reason="malformed"
        ) from None
    except _BrokenOff:
        raise UpstreamFailed(
            f"The server of {tool} broke off its answer. {doubt}", reason="disconnected", retryable=not mutates
        ) from None
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
        raise _unreachable(error, tool) from None
    except httpcore2.NetworkError:
        raise UpstreamFailed(
            f"The server of {tool} broke the connection. {doubt}", reason="disconnected", retryable=not mutates
        ) from None
    raise UpstreamFailed(
        f"The server of {tool} redirects more than {MAX_HOPS} times. Tell the operator; do not retry.",
        reason="redirect",
    )


def _unreachable(error: Exception, tool: str) -> UpstreamFailed:
    if error.args and isinstance(error.args[0], ssl.SSLError):
        return UpstreamFailed(
            f"The server of {tool} failed its identity check (TLS certificate). Tell the operator; do not retry.",
            reason="tls",
        )
    return UpstreamFailed(
        f"The server of {tool} cannot be reached; nothing was sent. Try again later.",
        reason="unreachable",
        retryable=True,
    )


async def _send(pool: AsyncConnectionPool, request: HttpRequest, max_bytes: int) -> HttpAnswer:
    origin = request.origin
    headers = [("host", origin.authority), *request.headers.items()]
    if request.content or request.method not in SAFE_METHODS:
        headers.append(("content-length", str(len(request.content))))
    response = await pool.handle_async_request(
        httpcore2.Request(
            request.method,
            URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=request.target),
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers],
            content=request.content,
        )
    )
    try:
        told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        body = b""
        if request.method == "HEAD":
            async for _ in response.aiter_stream():
                pass  # nothing comes, but this tells the connection that it is free again
        elif response.status not in _REDIRECTS:
            body = await _read(response, told, max_bytes)
        return HttpAnswer(status=response.status, headers=told, body=body)
    except httpcore2.ProtocolError:
        raise _BrokenOff from None
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def _read(response: httpcore2.Response, headers: Mapping[str, str], max_bytes: int) -> bytes:
    length = headers.get("content-length", "")
    if length.isdecimal() and len(length) < 20 and int(length) > max_bytes:
        raise BodyTooLarge
    stream = inflate(headers.get("content-encoding", ""), max_bytes)
    body = bytearray()
    raw = 0
    async for chunk in response.aiter_stream():
        raw += len(chunk)
        body += stream.feed(chunk)
        if max(raw, len(body)) > max_bytes:
            raise BodyTooLarge
    stream.end()
    return bytes(body)


def _redirected(request: HttpRequest, answer: HttpAnswer, tool: str, *, follow: bool) -> HttpRequest:
    """The request that a redirect asks for, on the same scheme, host and port only."""
    if not follow:
        raise UpstreamFailed(
            f"The server of {tool} redirects, which is not followed for {request.method}: what was approved was sent, "
            "and nothing else is. Tell the operator to correct the url; do not retry.",
            reason="redirect",
            status=answer.status,
        )
    try:
        origin, target = _target(request, answer.headers["location"].strip())
    except (KeyError, ValueError):  # BadUrl is a ValueError
        origin, target = None, ""
    if origin != request.origin or _TARGET.fullmatch(target) is None:
        raise UpstreamFailed(
            f"The server of {tool} redirects to another place, which is not followed. Tell the operator to correct "
            "the url; do not retry.",
            reason="redirect",
            status=answer.status,
        )
    return replace(request, target=target)


def _target(request: HttpRequest, location: str) -> tuple[Origin, str]:
    if _SCHEME.match(location) or location.startswith("//"):
        absolute = location if not location.startswith("//") else f"{request.origin.scheme}:{location}"
        origin, target = split_origin(absolute)
        target = target if target.startswith("/") else f"/{target}"
    elif location:
        origin, target = request.origin, urljoin(request.target, location)
    else:
        raise BadUrl("it leads nowhere")
    return origin, target.partition("#")[0]
