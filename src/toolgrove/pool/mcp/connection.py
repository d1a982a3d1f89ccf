"""HTTP/1.1 to one server over a few kept connections; httptools reads the answers.

Nothing here follows a redirect, keeps a cookie, or reads a proxy from the environment.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import anyio

from toolgrove.config import McpServerConfig
from toolgrove.pool.host import AddressRefused, Resolve, checked_addresses, names_loopback
from toolgrove.pool.mcp.faults import Broken, Misconfigured, Unsent
from toolgrove.pool.mcp.request_head import head_of
from toolgrove.pool.mcp.response_reader import Response, ResponseReader
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
CONNECT = 5.0
# Below the five seconds after which uvicorn and Node hang up, so that we do not write into a closing connection.
KEPT = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a server listens, and what a request to it says about that."""

    host: str
    port: int
    target: bytes
    authority: bytes
    tls: bool

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a URL once; what it says is where we connect."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
            authority = parts.netloc.encode("idna")
        except ValueError:
            raise Misconfigured("has a url that cannot be read") from None
        if parts.scheme not in ("http", "https") or not host:
            raise Misconfigured("has a url that is neither http nor https")
        if "@" in parts.netloc:
            raise Misconfigured("has a user name or password in its url: put them into its headers")
        tls = parts.scheme == "https"
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        if parts.query:
            target += "?" + quote(parts.query, safe="/?%:@!$&'()*+,;=~-._[]")
        return cls(host=host, port=port or (443 if tls else 80), target=target.encode(), authority=authority, tls=tls)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How far one server's connections may go, and who resolves names for them."""

    entry: str
    resolve: Resolve
    allow_private: bool
    allow_loopback: bool
    names: str = "has a url"

    async def addresses(self, where: Address) -> Sequence[str]:
        """Where to connect, all of it checked; Misconfigured says what leads elsewhere."""
        try:
            return await checked_addresses(
                where.host,
                where.port,
                resolve=self.resolve,
                allow_private=self.allow_private,
                allow_loopback=self.allow_loopback,
            )
        except AddressRefused as refused:
            log.debug("%s: %s leads to %s (%s)", self.entry, where.host, refused.address, refused.kind)
            way = f"; allowPrivate: true on {self.entry} allows it" if refused.may_be_allowed else ""
            raise Misconfigured(
                f"{self.names} that leads to a {refused.kind} address, which is not reached{way}"
            ) from None


def reach_of(name: str, config: McpServerConfig, resolve: Resolve, names: str = "has a url") -> Reach:
    """How far a server's connections may go; loopback needs no further word where the file itself says it."""
    return Reach(
        entry=f"mcpServers.{name}",
        resolve=resolve,
        allow_private=config.allow_private,
        allow_loopback=names_loopback(config.url or ""),
        names=names,
    )


class Connection:
    """One connection; carries one exchange at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._has_news = _looking_at(writer.get_extra_info("socket"))
        self._answer = ResponseReader()
        self.idle_since = 0.0
        self.kept = self.answered = False

    async def ask(self, method: bytes, target: bytes, headers: bytes, body: bytes = b"") -> Response:
        """Send a request whole and wait for the head of the answer; the headers are lines that `lines_of` wrote."""
        self.answered = False
        self._writer.write(head_of(method, target, headers, len(body) if body else None) + body)
        try:
            await self._writer.drain()
        except OSError:
            raise Broken("closed the connection without an answer") from None
        while self._answer.response is None:
            await self._feed()
        return self._answer.response

    async def read(self) -> bytes | None:
        """The next part of the answer's body; None at its end."""
        while (part := self._answer.part()) is None and not self._answer.is_complete:
            await self._feed()
        return part

    async def _feed(self) -> None:
        self._answer.check()
        try:
            data = await self._reader.read(65536)
        except OSError:
            raise Broken("closed the connection in the middle of an answer") from None
        if data:
            self.answered = True
            self._answer.feed(data)
        else:
            self._answer.end()

    def is_done(self) -> bool:
        """Whether the answer has been read to its end, with what is already here."""
        return self._answer.is_over

    def renew(self) -> bool:
        """Get ready for another exchange, if both sides are willing."""
        self.kept = True
        return self._answer.renew() and not (self._reader.at_eof() or self._writer.is_closing())

    def is_quiet(self) -> bool:
        """Whether nothing came since the last answer; the end of a connection also counts as something."""
        if self._reader.at_eof() or self._writer.is_closing():
            return False
        return not self._has_news()  # the loop may not have had a turn to notice it

    def drop(self) -> None:
        """Hang up without waiting for what is still to be sent."""
        self._writer.transport.abort()


def _looking_at(wire: socket.socket) -> Callable[[], bool]:
    """What tells whether something came that the loop has not seen yet."""
    if sys.platform == "win32":  # where select takes sockets with any number
        return lambda: bool(select.select([wire], [], [], 0)[0])
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return lambda: bool(poll.poll(0))


class KeptConnections:
    """The connections to one server that can be used again; how many there are is up to the callers."""

    def __init__(self, address: Address, reach: Reach, clock: Clock) -> None:
        self.address = address
        self._reach = reach
        self._clock = clock
        self._idle: deque[Connection] = deque()
        self._tls = _trust() if address.tls else None
        self._closed = False

    async def take(self) -> Connection:
        """A connection that is ready for a request."""
        stale = self._clock.monotonic() - KEPT
        while self._idle and self._idle[0].idle_since <= stale:
            self._idle.popleft().drop()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet():
                return connection
            connection.drop()
        return await self.dial()

    def give_back(self, connection: Connection) -> None:
        """Keep a connection if it can carry another exchange."""
        if self._closed or not connection.renew():
            connection.drop()
            return
        connection.idle_since = self._clock.monotonic()
        self._idle.append(connection)

    async def dial(self) -> Connection:
        """Connect anew; Unsent says why that failed."""
        try:
            with anyio.fail_after(CONNECT):
                return Connection(*await self._opened())
        except TimeoutError:
            raise Unsent("could not be reached in time") from None
        except ssl.SSLError:
            raise Unsent("offers no connection that we can trust (TLS)") from None
        except (OSError, UnicodeError):
            raise Unsent("could not be reached") from None

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Try the checked addresses of the host in turn; none may use up the time of the others.

        asyncio can race them, but loses a socket where it is cancelled in the wrong moment.
        """
        where = self.address
        problem: OSError = TimeoutError()
        for address in await self._reach.addresses(where):
            try:
                with anyio.fail_after(CONNECT / 2):
                    return await asyncio.open_connection(
                        address, where.port, ssl=self._tls, server_hostname=where.host if where.tls else None
                    )
            except OSError as error:  # TimeoutError is one
                problem = error
        raise problem

    def close(self) -> None:
        """Drop what is kept, and keep nothing from now on."""
        self._closed = True
        for connection in self._idle:
            connection.drop()
        self._idle.clear()


def _trust() -> ssl.SSLContext:
    """The authorities that the HTTP client of `mcp` trusts; loaded only where TLS is used."""
    import httpx2  # noqa: PLC0415

    return httpx2.create_ssl_context(trust_env=False)
