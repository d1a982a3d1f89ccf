"""The connections of one server: as many as fit, and new ones take the place of idle ones."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable

if sys.platform != "win32":
    import resource

MOST = 10_000
SPARE = 256
"""Open files that are left to everything but connections, where the limit is large."""
PAUSE = 0.5
log = logging.getLogger(__name__)


def room() -> int:
    """How many connections may be open at once: below the limit of open files, since other things need files too."""
    if sys.platform == "win32":
        return MOST
    else:  # for the type checker, which knows no name of the other platform here
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return MOST if limit == resource.RLIM_INFINITY else min(MOST, max(limit // 2, limit - SPARE))


class Connections:
    """The open connections. One without a request is idle, and is closed for a new one when there is no room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[asyncio.Transport] = set()
        self._idle: dict[asyncio.Transport, None] = {}
        self._left = asyncio.Event()
        self._is_full = self._is_failing = False

    def opened(self, connection: asyncio.Transport) -> None:
        """Count it, and treat it as idle until it sends a request."""
        self._open.add(connection)
        self.answered(connection)

    def asked(self, connection: asyncio.Transport) -> None:
        """Keep it: it has sent the whole head of a request."""
        self._idle.pop(connection, None)

    def answered(self, connection: asyncio.Transport) -> None:
        """Treat it as idle; those that were idle for longer are closed first."""
        if connection in self._open:
            self._idle[connection] = None

    def served(self, connection: asyncio.Transport) -> None:
        """A request came and was answered at once."""
        if connection in self._idle:
            del self._idle[connection]
            self._idle[connection] = None

    def closed(self, connection: asyncio.Transport) -> None:
        """Give its place to another."""
        self._idle.pop(connection, None)
        self._open.discard(connection)
        self._left.set()

    def close(self) -> None:
        """Close all that are open, whatever they wait for."""
        for connection in list(self._open):
            connection.abort()

    async def accept(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Take connections until cancelled; without room one waits here, and the others behind it in the kernel."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            try:
                connection = await _newcomer(listening)
            except OSError as error:
                self._tell_of(error)
                await asyncio.sleep(PAUSE)
                continue
            self._is_failing = False
            try:
                await self._make_room()
            except asyncio.CancelledError:
                connection.close()
                raise
            await loop.connect_accepted_socket(protocol, connection)

    async def _make_room(self) -> None:
        if len(self._open) < self._most:
            self._is_full = False
            return
        if not self._is_full:
            self._is_full = True
            log.warning(
                "%d connections are open, as many as fit: a new one takes the place of an idle one, or waits.",
                self._most,
            )
        while len(self._open) >= self._most:
            self._left.clear()
            if self._idle:
                longest = next(iter(self._idle))
                self.asked(longest)  # so that it is closed once
                longest.abort()
            await self._left.wait()

    def _tell_of(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            log.warning("New connections wait: %s. If files run out, raise the limit (ulimit -n).", error.strerror)


async def _newcomer(listening: socket.socket) -> socket.socket:
    """The next connection. If asyncio's own `sock_accept` is cancelled at the wrong moment, it loses one."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        return (await loop.sock_accept(listening))[0]
    while True:
        await _readable(loop, listening)  # first: when files run out, accepting fails even if no connection is waiting
        try:
            return listening.accept()[0]
        except BlockingIOError:
            continue


async def _readable(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
    news = asyncio.Event()
    loop.add_reader(listening, news.set)
    try:
        await news.wait()
    finally:
        loop.remove_reader(listening)
