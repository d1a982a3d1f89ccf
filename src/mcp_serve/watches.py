"""Who is told when a resource changes: clients of both eras, each for what it asked for and may read."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent

from mcp_serve.calls import User
from mcp_serve.resources import NotRead, Resources

MAX_WATCHES = 100
"""Resources that one client can watch: over one session of the older eras, or in one stream."""
TOO_MANY = f"A client can watch {MAX_WATCHES} resources at a time. Unsubscribe from one first."
End = Callable[[], None]
Send = Callable[[Awaitable[Any]], Awaitable[None]]


class Watches:
    """Keeps what the clients of an endpoint watch, and tells them; `send` gives up on one who does not read."""

    def __init__(self, resources: Resources, send: Send) -> None:
        self._resources = resources
        self._send = send
        self._sessions: dict[Hashable, dict[str, End]] = {}

    async def subscribe(
        self, connection: Hashable, session: ServerSession, uri: str, user: User | None, meta: Mapping[str, Any]
    ) -> None:
        """Tell the client of a session from now on; raises NotRead."""
        watched = self._sessions.setdefault(connection, {})
        if uri in watched:
            return
        if len(watched) >= MAX_WATCHES:
            raise NotRead(TOO_MANY)
        watched[uri] = _nothing
        telling = _Telling(lambda: self._send(session.send_resource_updated(uri)))
        try:
            end = await self._resources.watch(uri, telling, user, meta)
        except BaseException:
            watched.pop(uri, None)
            raise
        if uri in watched:
            watched[uri] = end
        else:  # it went away, or unsubscribed, meanwhile
            end()

    def unsubscribe(self, connection: Hashable, uri: str) -> None:
        """Tell that client no more."""
        if (end := self._sessions.get(connection, {}).pop(uri, None)) is not None:
            end()

    def forget(self, connection: Hashable) -> None:
        """Its session is over."""
        watched = self._sessions.pop(connection, {})
        while watched:
            watched.popitem()[1]()

    @asynccontextmanager
    async def stream(self, uris: Iterable[str], user: User | None, meta: Mapping[str, Any]) -> AsyncIterator[list[str]]:
        """Watch for the stream that listens in here: those of these addresses that can be watched."""
        stream, opened = _Stream(), dict[str, End]()
        try:
            for uri in list(dict.fromkeys(uris))[:MAX_WATCHES]:
                try:
                    opened[uri] = await self._resources.watch(uri, lambda uri=uri: stream.tell(uri), user, meta)  # type: ignore[misc]
                except NotRead as refused:
                    logging.getLogger(__name__).debug("a resource is not watched: %s", refused.reason or "not found")
            token = _STREAM.set(stream)
            try:
                yield list(opened)
            finally:
                _STREAM.reset(token)
        finally:
            for end in opened.values():
                end()


class _Telling:
    """Sends one notification for each change; while a client does not take one, the next ones wait as one."""

    def __init__(self, send: Callable[[], Awaitable[None]]) -> None:
        self._send = send
        self._sending: asyncio.Future[None] | None = None
        self._again = False

    def __call__(self) -> None:
        if self._sending is not None:
            self._again = True
            return
        self._sending = asyncio.ensure_future(self._send())
        self._sending.add_done_callback(self._sent)

    def _sent(self, sending: "asyncio.Future[None]") -> None:
        self._sending = None
        if self._again and not sending.cancelled():
            self._again = False
            self()


class _Stream:
    """One stream of 2026-07-28, told directly: others on the same bus may watch the same."""

    def __init__(self) -> None:
        self.listener: Callable[[ServerEvent], None] | None = None
        self._missed: list[str] = []

    def tell(self, uri: str) -> None:
        if self.listener is None:
            self._missed.append(uri)
        else:
            self.listener(ResourceUpdated(uri))

    def begin(self, listener: Callable[[ServerEvent], None]) -> None:
        self.listener, missed = listener, self._missed
        for uri in missed:
            listener(ResourceUpdated(uri))


_STREAM: ContextVar[_Stream | None] = ContextVar("stream", default=None)


class Bus(InMemorySubscriptionBus):
    """Tells every stream of changed lists; of changed resources each is told by itself."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Take a stream on."""
        if (stream := _STREAM.get()) is not None:
            stream.begin(listener)
        return super().subscribe(listener)


def _nothing() -> None:
    """The end of what did not begin yet."""
