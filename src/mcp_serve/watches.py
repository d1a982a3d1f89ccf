"""Who is told when a resource changes: clients of both eras, each for what it asked for and may read."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated

from mcp_serve.calls import User
from mcp_serve.resources import NotRead, Resources

MAX_WATCHES = 100
"""Resources that one client can watch: over one session of the older eras, or in one stream."""
TOO_MANY = f"A client can watch {MAX_WATCHES} resources at a time. Unsubscribe from one first."
End = Callable[[], None]


class Watches:
    """Keeps what clients watch. A change that several parts tell of at the same moment is sent once."""

    def __init__(
        self, resources: Resources, bus: InMemorySubscriptionBus, send: Callable[[Awaitable[Any]], Awaitable[None]]
    ) -> None:
        self._resources = resources
        self._bus = bus
        self._send = send
        self._sessions: dict[Hashable, tuple[ServerSession, dict[str, End]]] = {}
        self._changed: set[str] = set()
        self._sending: set[asyncio.Future[Any]] = set()

    async def subscribe(
        self, connection: Hashable, session: ServerSession, uri: str, user: User | None, meta: Mapping[str, Any]
    ) -> None:
        """Tell the client of a session from now on; raises NotRead."""
        _, watched = self._sessions.setdefault(connection, (session, {}))
        if uri in watched:
            return
        if len(watched) >= MAX_WATCHES:
            raise NotRead(TOO_MANY)
        watched[uri] = _nothing
        try:
            end = await self._watch(uri, user, meta)
        except BaseException:
            watched.pop(uri, None)
            raise
        if uri in watched:
            watched[uri] = end
        else:  # it went away, or unsubscribed, meanwhile
            end()

    def unsubscribe(self, connection: Hashable, uri: str) -> None:
        """Tell that client no more."""
        if connection in self._sessions and (end := self._sessions[connection][1].pop(uri, None)) is not None:
            end()

    def forget(self, connection: Hashable) -> None:
        """Its session is over."""
        if (gone := self._sessions.pop(connection, None)) is not None:
            watched = gone[1]
            ends = list(watched.values())
            watched.clear()
            for end in ends:
                end()

    async def open(self, uris: Iterable[str], user: User | None, meta: Mapping[str, Any]) -> dict[str, End]:
        """Watch for a stream: those of these addresses that can be, each with its end."""
        opened: dict[str, End] = {}
        try:
            for uri in list(dict.fromkeys(uris))[:MAX_WATCHES]:
                try:
                    opened[uri] = await self._watch(uri, user, meta)
                except NotRead as refused:
                    logging.getLogger(__name__).debug("a resource is not watched: %s", refused.reason or "not found")
        except BaseException:
            close(opened)
            raise
        return opened

    async def _watch(self, uri: str, user: User | None, meta: Mapping[str, Any]) -> End:
        return await self._resources.watch(uri, lambda: self._tell(uri), user, meta)

    def _tell(self, uri: str) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._tell_all)
        self._changed.add(uri)

    def _tell_all(self) -> None:
        changed, self._changed = self._changed, set()
        for uri in sorted(changed):
            self._begin(self._bus.publish(ResourceUpdated(uri)))
        for session, watched in self._sessions.values():
            for uri in sorted(changed & watched.keys()):
                self._begin(self._send(session.send_resource_updated(uri)))

    def _begin(self, work: Awaitable[None]) -> None:
        sending = asyncio.ensure_future(work)
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)


def close(opened: dict[str, End]) -> None:
    """End all of these."""
    for end in opened.values():
        end()


def _nothing() -> None:
    """The end of what did not begin yet."""
