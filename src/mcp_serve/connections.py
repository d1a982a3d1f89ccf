"""The connections of one server: as many as fit, and new ones take the place of idle ones.

A turn of the loop takes in several of those that wait, and goes on with others while they are set up: whoever comes
waits for a few turns, however many come at once. `AT_ONCE` bounds what that adds to a turn. Those that are being set up
count too, so that there are never more than fit. Without room, or without a file for one more, nothing is asked of
the kernel until there may be: no turn is spent on finding out again.
"""

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
AT_ONCE = 32
"""New connections that one turn of the loop takes in."""
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
        self._setting_up: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._is_full = self._is_failing = False

    def opened(self, connection: asyncio.Transport) -> None:
        """Count it, and treat it as idle until it sends a request."""
        self._open.add(connection)
        self.answered(connection)

    def asked(self, connection: asyncio.Transport) -> bool:
        """Keep it: it has sent the whole head of a request, or what may be one. Says whether it was idle."""
        is_idle = connection in self._idle
        self._idle.pop(connection, None)
        return is_idle

    def answered(self, connection: asyncio.Transport) -> None:
        """Treat it as idle; those that were idle for longer are closed first."""
        if connection in self._open:
            self._idle[connection] = None
            self._changed.set()

    def served(self, connection: asyncio.Transport) -> None:
        """A request came and was answered at once."""
        if connection in self._idle:
            del self._idle[connection]
            self._idle[connection] = None

    def closed(self, connection: asyncio.Transport) -> None:
        """Give its place to another."""
        self._idle.pop(connection, None)
        self._open.discard(connection)
        self._changed.set()

    def close(self) -> None:
        """Close all that are open, whatever they wait for."""
        for connection in list(self._open):
            connection.abort()

    async def accept(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Take connections until cancelled; without room one waits here, and the others behind it in the kernel."""
        listening.setblocking(False)
        while True:
            try:
                await self._accept_some(listening, protocol)
            except OSError as error:
                self._tell_of(error)
                await asyncio.sleep(PAUSE)

    async def _accept_some(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Wait for a connection, and take it and those behind it, as many as a turn may."""
        if sys.platform == "win32":
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            await self._take(connection, protocol)
            return
        await _readable(listening)  # first: when files run out, accepting fails even if no connection is waiting
        for _ in range(AT_ONCE):
            try:
                connection = listening.accept()[0]
            except BlockingIOError:
                self._is_failing = False
                return
            await self._take(connection, protocol)

    async def _take(self, connection: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Make room for a connection, and begin to set it up."""
        try:
            await self._make_room()
        except asyncio.CancelledError:
            connection.close()
            raise
        task = asyncio.create_task(self._set_up(connection, protocol))
        self._setting_up.add(task)
        task.add_done_callback(self._setting_up.discard)

    async def _set_up(self, connection: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
        except OSError as error:
            connection.close()
            self._tell_of(error)

    async def _make_room(self) -> None:
        if len(self._open) + len(self._setting_up) < self._most:
            self._is_full = False
            return
        if self._setting_up:  # some of them may count twice
            await asyncio.wait(self._setting_up)
        if len(self._open) < self._most:
            return
        if not self._is_full:
            self._is_full = True
            log.warning(
                "%d connections are open, as many as fit: a new one takes the place of an idle one, or waits.",
                self._most,
            )
        while len(self._open) >= self._most:
            self._changed.clear()
            if self._idle:
                longest = next(iter(self._idle))
                self.asked(longest)  # so that it is closed once
                longest.abort()
            await self._changed.wait()

    def _tell_of(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            log.warning("New connections wait: %s. If files run out, raise the limit (ulimit -n).", error.strerror)


async def _readable(listening: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    loop.add_reader(listening, news.set)
    try:
        await news.wait()
    finally:
        loop.remove_reader(listening)
