"""What is said to one server once it is clear how: its lists, calls, the reading of resources, prompts."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from itertools import count
from typing import Any

import anyio

from toolgrove.pool.mcp.backoff import Backoff
from toolgrove.pool.mcp.era import HANDSHAKE, MODERN, MODERN_ERA, Era, Mirrors, mirrored, opening
from toolgrove.pool.mcp.faults import Fault, Nonsense, Rejected
from toolgrove.pool.mcp.front import CallFront
from toolgrove.pool.mcp.jsonrpc import UNSUPPORTED_VERSION, Message, Progress, RpcRequest, encode, notification
from toolgrove.pool.mcp.link import Link
from toolgrove.types import COMPLETE, GET_PROMPT, LOG_LEVELS, READ_RESOURCE

log = logging.getLogger("toolgrove.pool")
MAX_LISTED = 5_000
MAX_PAGES = 200
MAX_LIST = 16 * 1024 * 1024
PROBE = 2.0
_LEVEL = 2.0


class Session:
    """A server that answered; knows its era and what it can do."""

    def __init__(self, link: Link, era: Era, greeting: Message, numbers: count[int]) -> None:
        self.link = link
        self.era = era
        said = greeting.get("instructions")
        self.instructions = said if isinstance(said, str) else ""
        self._numbers = numbers
        self._level = len(LOG_LEVELS)
        capabilities = _capabilities(greeting)
        self._logs = isinstance(capabilities.get("logging"), dict)
        self._has_tools = isinstance(capabilities.get("tools"), dict)
        self._has_completions = isinstance(capabilities.get("completions"), dict)
        self.has_prompts = isinstance(capabilities.get("prompts"), dict)
        self.has_resources = isinstance(capabilities.get("resources"), dict)
        self.tells_updates = _says(capabilities, "resources", "subscribe")
        self._changing = [
            kind for kind in ("tools", "resources", "prompts") if _says(capabilities, kind, "listChanged")
        ]

    async def list_tools(self) -> list[Any]:
        """Every tool as the server describes it."""
        return await self._all("tools/list", "tools", "tools") if self._has_tools else []

    async def list_resources(self) -> list[Any]:
        """Every resource as the server describes it."""
        return await self._all("resources/list", "resources", "resources") if self.has_resources else []

    async def list_resource_templates(self) -> list[Any]:
        """Every template of resources as the server describes it; some servers do not know the question."""
        if not self.has_resources:
            return []
        try:
            return await self._all("resources/templates/list", "resourceTemplates", "resource templates")
        except Rejected:
            return []

    async def list_prompts(self) -> list[Any]:
        """Every prompt as the server describes it."""
        return await self._all("prompts/list", "prompts", "prompts") if self.has_prompts else []

    async def _all(self, method: str, key: str, what: str) -> list[Any]:
        """A list of any number of pages, within bounds."""
        found: list[Any] = []
        cursors: set[str] = set()
        params: Message = {}
        size = 0
        while True:
            page = await self._ask(method, params)
            listed = page.get(key)
            if not isinstance(listed, list):
                raise Nonsense(f"sent a list of {what} that is no list")
            found += listed
            cursor = page.get("nextCursor")
            if len(found) > MAX_LISTED:
                raise Nonsense(f"offers more than {MAX_LISTED:,} {what}")
            if cursor is None:
                return found
            if not isinstance(cursor, str) or cursor in cursors:
                raise Nonsense(f"sends its list of {what} in circles")
            cursors.add(cursor)
            size += len(encode({key: listed}))
            if size > MAX_LIST:
                raise Nonsense(f"sends a list of {what} of more than {MAX_LIST // (1024 * 1024)} MiB")
            if len(cursors) >= MAX_PAGES:
                raise Nonsense(f"sends its list of {what} in more than {MAX_PAGES} pages")
            params = {"cursor": cursor}

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        whose: str,
        mirrors: Mirrors = (),
        progress: Progress | None = None,
        front: CallFront | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Message:
        """Call a tool; the request is never sent a second time from here. `more` goes on with a call that asked."""
        headers = self.era.headers("tools/call", name)
        if mirrors and self.era.modern:
            headers.update(mirrored(mirrors, arguments))
        params = {"name": name, "arguments": arguments, **(more or {})}
        return await self._sent("tools/call", params, headers, progress, front, whose)

    async def hear_log(self, level: str) -> None:
        """Have a server of the handshake era log what somebody wants to hear; never less than before."""
        wanted = LOG_LEVELS.index(level)
        if self.era.modern or not self._logs or wanted >= self._level:
            return
        self._level = wanted
        with anyio.move_on_after(_LEVEL):
            try:
                await self._ask("logging/setLevel", {"level": level})
            except Fault as fault:
                log.debug("a server %s when it was told how much to log", fault)

    async def read_resource(self, uri: str, *, progress: Progress | None = None) -> Message:
        """Read a resource."""
        return await self._sent(READ_RESOURCE, {"uri": uri}, self.era.headers(READ_RESOURCE, uri), progress)

    async def get_prompt(self, name: str, arguments: Mapping[str, str], *, progress: Progress | None = None) -> Message:
        """Get a prompt, filled in."""
        params = {"name": name, "arguments": arguments}
        return await self._sent(GET_PROMPT, params, self.era.headers(GET_PROMPT, name), progress)

    async def complete(self, asked: Message) -> Message:
        """What the server suggests for an argument; nothing where it suggests nothing at all."""
        if not self._has_completions:
            return {"completion": {"values": []}}
        return await self._ask(COMPLETE, asked)

    async def subscribe(self, uri: str) -> None:
        """Hear of changes of a resource; until 2025-11-25."""
        await self._ask("resources/subscribe", {"uri": uri})

    async def unsubscribe(self, uri: str) -> None:
        """Hear of them no more."""
        await self._ask("resources/unsubscribe", {"uri": uri})

    def number(self) -> int:
        """The id of a request that is made later."""
        return next(self._numbers)

    async def listen(self, key: int, wanted: Message) -> None:
        """Hear of what is wanted until the server ends the stream; since 2026-07-28."""
        method = "subscriptions/listen"
        params = self.era.params({"notifications": wanted})
        await self.link.request(RpcRequest(id=key, method=method, params=params, headers=self.era.headers(method)))

    async def _sent(
        self,
        method: str,
        params: Message,
        headers: Mapping[str, str],
        progress: Progress | None,
        front: CallFront | None = None,
        whose: str = "",
    ) -> Message:
        key = next(self._numbers)
        request = RpcRequest(
            id=key,
            method=method,
            params=self.era.params(params, key if progress is not None else None, front),
            headers=headers,
            progress=progress,
            front=front,
            whose=whose,
        )
        return await self.link.request(request)

    @property
    def listens(self) -> bool:
        """Whether it takes a request of its own to hear of changes."""
        if self.era.modern:
            return bool(self._changing)
        return self.link.streams and (bool(self._changing) or self.tells_updates)

    async def follow(self) -> None:
        """Hear of changes as long as the server lives; that we do is a reason to list its tools too."""
        backoff = Backoff(random.random)
        while True:
            begun = anyio.current_time()
            try:
                if self.era.modern:
                    await self.listen(self.number(), {f"{kind}ListChanged": True for kind in self._changing})
                else:
                    await self.link.stream()
            except (Rejected, Nonsense):
                self.link.changed()  # it does not offer that after all; its list is read again now and then
                return
            except Fault as fault:
                log.debug("a server %s while we listened", fault)
            await anyio.sleep(backoff.pause(anyio.current_time() - begun))

    async def _ask(self, method: str, params: Message) -> Message:
        return await self.link.request(
            RpcRequest(
                id=next(self._numbers), method=method, params=self.era.params(params), headers=self.era.headers(method)
            )
        )


class Negotiation:
    """Finds out which era a server speaks, and remembers it for the next time."""

    def __init__(self, protocol: str, *, elicitation: bool = False) -> None:
        self._opening = opening(elicitation=elicitation)
        self._wanted = {"modern": True, "legacy": False}.get(protocol)
        self._known: bool | None = None

    async def session(self, link: Link) -> Session:
        """Greet the server in the era that it understands."""
        numbers = count(1)
        modern = self._wanted if self._wanted is not None else self._known
        try:
            if modern is None:
                session = await self._either(link, numbers)
            else:
                session = await (_discover(link, numbers) if modern else self._initialize(link, numbers))
        except Fault as fault:
            # A server that broke at one question may still answer the other.
            self._known = False if modern is None else None
            if isinstance(fault, Rejected) and self._wanted is not None:
                raise Nonsense("does not speak the era of the protocol that is set for it") from None
            raise
        self._known = session.era.modern
        link.adopt(session.era)
        if not session.era.modern:
            await link.notify(notification("notifications/initialized"))
        return session

    async def _either(self, link: Link, numbers: count[int]) -> Session:
        """Ask in the new way first; if that is refused or takes long, in the old way as well."""
        found: list[Session] = []
        faults: list[Fault] = []
        refused = anyio.Event()

        async with anyio.create_task_group() as tasks:

            async def discover() -> None:
                try:
                    found.append(await _discover(link, numbers))
                    tasks.cancel_scope.cancel()
                except (Rejected, Nonsense):
                    refused.set()
                except Fault as fault:
                    faults.append(fault)
                    tasks.cancel_scope.cancel()

            tasks.start_soon(discover)
            with anyio.move_on_after(PROBE):
                await refused.wait()
            try:
                found.append(await self._initialize(link, numbers))
                tasks.cancel_scope.cancel()
            except Fault as fault:
                faults.append(fault)
                late = isinstance(fault, Rejected) and fault.code == UNSUPPORTED_VERSION and not refused.is_set()
                if not late:  # else it took the first question after all, and its answer is on the way
                    tasks.cancel_scope.cancel()
        if not found:
            raise faults[-1]
        return found[0]

    async def _initialize(self, link: Link, numbers: count[int]) -> Session:
        result = await link.request(
            RpcRequest(id=next(numbers), method="initialize", params=self._opening, cancellable=False)
        )
        version = result.get("protocolVersion")
        if version not in HANDSHAKE:
            raise Nonsense("speaks a protocol version that we do not know")
        return Session(link, Era(version=str(version), modern=False), result, numbers)


async def _discover(link: Link, numbers: count[int]) -> Session:
    method = "server/discover"
    result = await link.request(
        RpcRequest(
            id=next(numbers),
            method=method,
            params=MODERN_ERA.params({}),
            headers=MODERN_ERA.headers(method),
            cancellable=False,
        )
    )
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or MODERN not in versions:
        raise Nonsense(f"does not speak protocol {MODERN}")
    return Session(link, MODERN_ERA, result, numbers)


def _says(capabilities: Mapping[str, Any], kind: str, what: str) -> bool:
    offered = capabilities.get(kind)
    return isinstance(offered, dict) and offered.get(what) is True


def _capabilities(result: Message) -> Mapping[str, Any]:
    given = result.get("capabilities")
    return given if isinstance(given, dict) else {}
