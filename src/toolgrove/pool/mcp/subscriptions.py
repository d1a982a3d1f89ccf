"""The resources of one server that somebody watches: one subscription each, taken up again on every connection."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Set

import anyio
from anyio.abc import TaskGroup

from toolgrove.pool.mcp.backoff import Backoff
from toolgrove.pool.mcp.faults import Broken, Fault, Rejected
from toolgrove.pool.mcp.jsonrpc import INVALID_PARAMS, Message
from toolgrove.pool.mcp.news import News
from toolgrove.pool.mcp.session import Session

log = logging.getLogger("toolgrove.pool")
ANSWER = 10.0
_STREAM = "io.modelcontextprotocol/subscriptionId"
Outcomes = dict[str, Fault | None]
"""What became of each subscription on this connection: None where it holds."""


class Subscriptions:
    """Who watches what; a server hears of an address once, however many do."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._watchers: dict[str, dict[object, Callable[[], None]]] = {}
        self._outcomes: Outcomes = {}
        self._session: Session | None = None
        self._listening: _Listening | None = None
        self._wanted = anyio.Event()
        self._settled = anyio.Event()

    def add(self, uri: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Watch from now on, as soon as the server lets us; the answer ends it."""
        key = object()
        self._watchers.setdefault(uri, {})[key] = tell
        self._stir()

        def end() -> None:
            watchers = self._watchers.get(uri, {})
            watchers.pop(key, None)
            if not watchers and self._watchers.get(uri) is watchers:
                del self._watchers[uri]
                self._stir()

        return end

    async def confirmed(self, session: Session, uri: str) -> None:
        """Wait until the server agreed; raises the Fault if it did not."""
        while uri not in self._outcomes:
            if self._session is not None and self._session is not session:
                raise Broken("was connected anew meanwhile")
            await self._settled.wait()
        fault = self._outcomes[uri]
        if fault is not None:
            raise fault.with_traceback(None)

    def acknowledged(self, params: Message) -> bool:
        """Take the server's word that a stream began; False if it is not one of ours."""
        return self._listening is not None and self._listening.acknowledged(_stream_of(params), params)

    def updated(self, params: Message) -> None:
        """Take the server's word that a resource changed, or a part of one."""
        uri, stream = params.get("uri"), _stream_of(params)
        if not isinstance(uri, str):
            return
        if stream is not None and self._listening is not None and stream != self._listening.stream:
            return  # the stream before this one, which is about to end
        for watched in [one for one in self._watchers if uri == one or uri.startswith(one.rstrip("/") + "/")]:
            self._tell(watched)

    def _tell(self, uri: str) -> None:
        self._news.soon(f"updated {uri}", lambda: [tell() for tell in list(self._watchers.get(uri, {}).values())])

    async def keep(self, session: Session) -> None:
        """Have the server tell of what is watched, as long as this connection lasts."""
        if not session.tells_updates:
            return
        missed = set(self._watchers)
        self._session, self._outcomes = session, {}
        try:
            async with anyio.create_task_group() as tasks:
                self._listening = _Listening(session, tasks, self._lost) if session.era.modern else None
                way = self._listening or _Asking(session)
                while True:
                    wanted, self._wanted = set(self._watchers), anyio.Event()
                    await way.settle(wanted, self._outcomes)
                    self._settled.set()
                    self._settled = anyio.Event()
                    for uri in missed & wanted:
                        self._tell(uri)  # it may have changed while nobody listened
                    missed = set()
                    await self._wanted.wait()
        finally:
            self._session = self._listening = None
            self._outcomes = {}

    def _lost(self) -> None:
        """A stream ended by itself: listen again, and take all of it for changed."""
        for uri in self._watchers:
            self._tell(uri)
        self._stir()

    def _stir(self) -> None:
        self._wanted.set()


class _Asking:
    """Until 2025-11-25: one request for each address."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def settle(self, wanted: Set[str], outcomes: Outcomes) -> None:
        """Subscribe to what is new, and unsubscribe from what nobody watches any more."""
        async with anyio.create_task_group() as tasks:
            for uri in outcomes.keys() - wanted:
                if outcomes.pop(uri) is None:
                    tasks.start_soon(self._unsubscribe, uri)
            for uri in wanted - outcomes.keys():
                tasks.start_soon(self._subscribe, uri, outcomes)

    async def _subscribe(self, uri: str, outcomes: Outcomes) -> None:
        fault: Fault | None = Broken("did not answer in time")
        with anyio.move_on_after(ANSWER):
            try:
                await self._session.subscribe(uri)
                fault = None
            except Fault as problem:
                fault = problem
        outcomes[uri] = fault

    async def _unsubscribe(self, uri: str) -> None:
        with anyio.move_on_after(ANSWER):
            try:
                await self._session.unsubscribe(uri)
            except Fault as fault:
                log.debug("a server %s when we unsubscribed", fault)


class _Listening:
    """From 2026-07-28 on: one stream for all addresses; another set of them takes another stream."""

    def __init__(self, session: Session, tasks: TaskGroup, lost: Callable[[], None]) -> None:
        self.stream: int | None = None
        self._session = session
        self._tasks = tasks
        self._lost = lost
        self._backoff = Backoff(random.random)
        self._scope: anyio.CancelScope | None = None
        self._heard: frozenset[str] = frozenset()
        self._awaited: int | None = None
        self._begun = anyio.Event()
        self._granted: frozenset[str] = frozenset()
        self._fault: Fault | None = None

    def acknowledged(self, stream: object, params: Message) -> bool:
        """The stream began; from now on its words count, and no other's."""
        if stream is None or stream != self._awaited:
            return False
        given = params.get("notifications")
        uris = given.get("resourceSubscriptions") if isinstance(given, dict) else None
        self._granted = frozenset(map(str, uris)) if isinstance(uris, list) else frozenset()
        self.stream, self._awaited = self._awaited, None
        self._begun.set()
        return True

    async def settle(self, wanted: Set[str], outcomes: Outcomes) -> None:
        """Listen to what is wanted; the new stream begins before the old one ends."""
        for uri in outcomes.keys() - wanted:
            del outcomes[uri]
        asked = frozenset(uri for uri in wanted if outcomes.get(uri) is None)
        if asked == self._heard and (self._scope is not None or not asked):
            return
        before, self._scope, self._heard = self._scope, None, asked
        if asked:
            await self._begin(asked, outcomes)
        else:
            self.stream = None
        if before is not None:
            before.cancel()

    async def _begin(self, asked: frozenset[str], outcomes: Outcomes) -> None:
        self._begun, self._fault, self._granted = anyio.Event(), None, frozenset()
        self._awaited = key = self._session.number()
        scope = self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._listen, key, sorted(asked), scope)
        with anyio.move_on_after(ANSWER):
            await self._begun.wait()
        for uri in asked:
            if uri in self._granted:
                outcomes[uri] = None
            elif self._begun.is_set() and self._fault is None:
                outcomes[uri] = Rejected(INVALID_PARAMS, "it does not tell of changes of this resource")
            else:
                outcomes[uri] = self._fault or Broken("did not answer in time")

    async def _listen(self, key: int, uris: list[str], scope: anyio.CancelScope) -> None:
        with scope:
            begun = anyio.current_time()
            try:
                await self._session.listen(key, {"resourceSubscriptions": uris})
            except Fault as fault:
                if self._awaited == key:  # refused before it began
                    self._awaited, self._fault = None, fault
                    self._begun.set()
                    return
                log.debug("a server %s while we listened", fault)
            await anyio.sleep(self._backoff.pause(anyio.current_time() - begun))
            if self._scope is scope:
                self._scope = None
                self._lost()


def _stream_of(params: Message) -> object:
    meta = params.get("_meta")
    return meta.get(_STREAM) if isinstance(meta, dict) else None
