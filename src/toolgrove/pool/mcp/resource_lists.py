"""The resources and templates that one server lists: checked, and asked for anew after a few seconds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from toolgrove.pool import metadata
from toolgrove.pool.definition_lint import suspect
from toolgrove.pool.mcp.faults import Expired, Fault
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.pool.mcp.server import LISTING, Server
from toolgrove.pool.mcp.session import Session
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
KEPT = 5.0
"""Seconds for which a list is good, so that nobody can have a server asked all the time."""


class _Kept(NamedTuple):
    session: Session
    until: float
    listed: Sequence[Message]


class ResourceList:
    """One of the two lists; many who ask at the same time put one question."""

    def __init__(
        self,
        server: Server,
        ask: Callable[[Session], Awaitable[list[Any]]],
        key: str,
        *,
        timeout: float,
        secrets: Secrets,
        clock: Clock,
    ) -> None:
        self._server = server
        self._ask = ask
        self._key = key
        self._timeout = min(timeout, LISTING)
        self._secrets = secrets
        self._clock = clock
        self._kept: _Kept | None = None
        self._one_at_a_time = anyio.Lock()

    async def latest(self) -> Sequence[Message]:
        """What the server lists; nothing while it is down or does not answer in time."""
        async with self._one_at_a_time:
            session, kept = self._server.session, self._kept
            if session is None:
                return ()
            if kept is not None and kept.session is session and self._clock.monotonic() < kept.until:
                return kept.listed
            listed = await to_thread.run_sync(self._judged, await self._asked(session))
            self._kept = _Kept(self._server.session or session, self._clock.monotonic() + KEPT, listed)
            return listed

    async def _asked(self, session: Session) -> list[Any]:
        try:
            with anyio.fail_after(self._timeout):
                try:
                    return await self._ask(session)
                except Expired:
                    self._server.forget(session)
                    await self._server.settled()
                    return [] if self._server.session is None else await self._ask(self._server.session)
        except (Fault, TimeoutError) as fault:
            why = "did not answer in time" if isinstance(fault, TimeoutError) else str(fault)
            log.warning("server %s %s when it was asked for its resources", self._server.name, why)
            return []

    def _judged(self, listed: list[Any]) -> list[Message]:
        """Those that may be shown: well formed, with no unseen characters, and with no word to the model."""
        listed = self._secrets.scrub(listed)
        good: list[Message] = []
        for one in listed:
            problems = self._problems(one)
            if problems:
                log.warning("server %s: a resource is left out: %s", self._server.name, problems[0])
            else:
                good.append(one)
        return good

    def _problems(self, one: Any) -> Sequence[str]:
        problems = metadata.check_words(one)
        if problems:
            return problems
        if not isinstance(one.get(self._key), str) or not isinstance(one.get("name"), str):
            return [f"it has no {self._key} or no name"]
        return suspect(one).instructing
