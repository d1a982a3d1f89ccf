"""What one server lists beside its tools: checked, and asked for anew after a few seconds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from toolgrove.pool import metadata
from toolgrove.pool.definition_lint import suspect
from toolgrove.pool.mcp.faults import Expired, Fault
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.pool.mcp.server import LISTING, Server
from toolgrove.pool.mcp.session import Session
from toolgrove.pool.naming import is_foreign_legal
from toolgrove.pool.offer import OfferedDefinition
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
KEPT = 5.0
"""Seconds for which a list is good, so that nobody can have a server asked all the time."""


class _Kept(NamedTuple):
    session: Session
    until: float
    listed: Sequence[OfferedDefinition]


class _Verdict(NamedTuple):
    """What was found in one entry; empty `problems` are good news."""

    problems: Sequence[str]
    mentions: Mapping[str, str]


class OfferedList:
    """One list; many who ask at the same time put one question. `problems` are what is wrong with an entry."""

    def __init__(
        self,
        server: Server,
        ask: Callable[[Session], Awaitable[list[Any]]],
        problems: Callable[[Message], Sequence[str]],
        *,
        timeout: float,
        secrets: Secrets,
        clock: Clock,
    ) -> None:
        self._server = server
        self._ask = ask
        self._problems = problems
        self._timeout = min(timeout, LISTING)
        self._secrets = secrets
        self._clock = clock
        self._kept: _Kept | None = None
        self._verdicts: dict[str, _Verdict] = {}
        self._changes = 0
        self._one_at_a_time = anyio.Lock()

    def changed(self) -> None:
        """Ask anew at the next occasion: what is kept, or on its way, may be old."""
        self._kept = None
        self._changes += 1

    async def latest(self) -> Sequence[OfferedDefinition]:
        """What the server lists; nothing while it is down or does not answer in time."""
        async with self._one_at_a_time:
            session, kept = self._server.session, self._kept
            if session is None:
                return ()
            if kept is not None and kept.session is session and self._clock.monotonic() < kept.until:
                return kept.listed
            mark = self._changes
            listed = await to_thread.run_sync(self._judged, await self._asked(session))
            if mark == self._changes:
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
            log.warning("server %s %s when it was asked what it offers", self._server.name, why)
            return []

    def _judged(self, listed: list[Any]) -> list[OfferedDefinition]:
        """Those that may be shown: well formed, with no unseen characters, and with no word to the model.

        What the server listed before is not read again.
        """
        listed = self._secrets.scrub(listed)
        good: list[OfferedDefinition] = []
        before, self._verdicts = self._verdicts, {}
        for one in listed:
            key = metadata.definition_hash(one) if isinstance(one, dict) else ""
            verdict = self._verdicts[key] = before.get(key) or self._verdict(one)
            if not verdict.problems:
                good.append(OfferedDefinition(one, verdict.mentions))
            elif key not in before:
                log.warning("server %s: a resource or prompt is left out: %s", self._server.name, verdict.problems[0])
        return good

    def _verdict(self, one: Any) -> _Verdict:
        problems = metadata.check_words(one) or self._problems(one)
        if problems:
            return _Verdict(problems, {})
        found = suspect(one)
        return _Verdict(found.instructing, found.mentions)


def of_resource(one: Message) -> Sequence[str]:
    """What is wrong with a resource."""
    return _unnamed(one, "uri")


def of_template(one: Message) -> Sequence[str]:
    """What is wrong with a template of resources."""
    return _unnamed(one, "uriTemplate")


def of_prompt(one: Message) -> Sequence[str]:
    """What is wrong with a prompt; its name must be fit for the pool, as that of a tool."""
    name, arguments = one.get("name"), one.get("arguments")
    if not isinstance(name, str) or not is_foreign_legal(name):
        return ["its name is not 1 to 128 characters of letters, digits, '_', '-', '.' and '/'"]
    known = arguments is None or (isinstance(arguments, list) and all(map(_is_argument, arguments)))
    return () if known else ["its arguments are malformed"]


def _unnamed(one: Message, key: str) -> Sequence[str]:
    is_named = isinstance(one.get(key), str) and isinstance(one.get("name"), str)
    return () if is_named else [f"it has no {key} or no name"]


def _is_argument(argument: Any) -> bool:
    return (
        isinstance(argument, dict)
        and isinstance(argument.get("name"), str)
        and isinstance(argument.get("required"), bool | None)
    )
