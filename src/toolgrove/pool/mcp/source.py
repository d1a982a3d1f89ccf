"""One external MCP server as a source of the pool; each call is sent once and bounded in every way."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from random import random
from typing import TypeVar

import anyio

from toolgrove.config import McpServerConfig, PinMode
from toolgrove.errors import Forbidden, ResourceNotFound, RightsMissing, ToolNotFound, UpstreamFailed
from toolgrove.notation.unseen_text import visible
from toolgrove.pool.fair_shares import FairShares, Overdue, share_of
from toolgrove.pool.host import Resolve, resolve_host
from toolgrove.pool.mcp.breaker import Breakers
from toolgrove.pool.mcp.catalog import Catalog, CatalogEntry
from toolgrove.pool.mcp.effect_policy import EffectPolicy
from toolgrove.pool.mcp.faults import Busy, Expired, Fault, Misconfigured, Nonsense, Rejected, ScopeMissing, Unsent
from toolgrove.pool.mcp.front import CallFront
from toolgrove.pool.mcp.jsonrpc import Message, Progress
from toolgrove.pool.mcp.offered_lists import OfferedList, of_prompt, of_resource, of_template
from toolgrove.pool.mcp.result import (
    POLICY,
    brief,
    check,
    check_completion,
    check_contents,
    check_messages,
    completion_of,
    failure_of,
    is_error,
    is_impostor,
    prompt_of,
    resource_of,
    result_of,
)
from toolgrove.pool.mcp.sandbox import NOWHERE, ProjectFolders
from toolgrove.pool.mcp.server import Server
from toolgrove.pool.mcp.session import Session
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.offer import Offer, OfferedDefinition, Unavailable
from toolgrove.pool.offspring import Offspring
from toolgrove.pool.pin_policy import PinPolicy
from toolgrove.pool.secrets import Secrets
from toolgrove.pool.source_names import SourceNames
from toolgrove.store.state import Logins, MemoryLogins, Pins
from toolgrove.types import (
    COMPLETE,
    GET_PROMPT,
    READ_RESOURCE,
    SUBSCRIBE,
    Call,
    Clock,
    Kind,
    Listed,
    Result,
    SystemClock,
    Tool,
)

log = logging.getLogger("toolgrove.pool")
_LOOK = 1.0
"""Seconds between two looks at the pins, while a definition waits."""
_MAY_HAVE_RUN = " It may have run all the same: look before you call it again."
_NO_RESOURCE = frozenset((-32002, -32602))
"""How servers say that they have no such resource: until 2025-11-25, and since."""
_Answer = TypeVar("_Answer")


class McpSource:
    """One server and its tools; a call never waits for a server that is down."""

    kind: Kind = "mcp"

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        *,
        secrets: Secrets,
        pins: Pins,
        pin_mode: PinMode = "firstUse",
        first_contact: float = 0.0,
        clock: Clock | None = None,
        resolve: Resolve = resolve_host,
        folders: ProjectFolders = NOWHERE,
        misdeeds: Misdeeds | None = None,
        offspring: Offspring | None = None,
        logins: Logins | None = None,
    ) -> None:
        self.name = name
        self._elicitation = config.elicitation
        self.takes_login = config.oauth is not None and config.oauth.grant == "authorization_code"
        self._timeout = config.timeout
        self._secrets = secrets
        clock = clock or SystemClock()
        secrets.hide_settings({**config.env, **config.headers})
        if config.oauth is not None and config.oauth.client_secret is not None:
            secrets.hide_settings({"clientSecret": config.oauth.client_secret})
        effects = EffectPolicy(name, config)
        policy = PinPolicy(
            name, pins=pins, mode=config.pins or pin_mode, clock=clock, window=first_contact, volatile=config.volatile
        )
        names = SourceNames(name, f"mcpServers.{name}", config)
        self._catalog = Catalog(self, names=names, effects=effects, policy=policy, pins=pins, secrets=secrets)
        self._server = Server(
            name,
            config,
            self._catalog,
            secrets=secrets,
            clock=clock,
            random=random,
            resolve=resolve,
            folders=folders,
            misdeeds=misdeeds or Misdeeds(),
            offspring=offspring,
            logins=logins or MemoryLogins(clock),
        )
        lists = partial(OfferedList, self._server, timeout=config.timeout, secrets=secrets, clock=clock)
        self._resources = lists(Session.list_resources, of_resource)
        self._templates = lists(Session.list_resource_templates, of_template)
        self._prompts = lists(Session.list_prompts, of_prompt)
        self._server.news.follow(self._list_changed)
        self._breakers = Breakers(clock, random)
        self._shares = FairShares(config.concurrency, clock, of=f"Server {name!r}")

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the server connected until we are cancelled, and hear of definitions that a person accepts."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_pins, changed)
            tasks.start_soon(self._server.follow_rights, changed)
            await self._server.run(changed)

    async def _follow_pins(self, changed: Callable[[], None]) -> None:
        told = False
        while True:
            await anyio.sleep(_LOOK)
            try:
                if await self._catalog.accepted_meanwhile():
                    changed()
                told = False
            except OSError as problem:
                if not told:
                    log.error("server %s: its pins cannot be read: %s", self.name, problem)
                told = True

    @property
    def notice(self) -> str:
        """What the operator should do though the server answers; empty if nothing."""
        return self._server.notice

    @property
    def wanted_scopes(self) -> str | None:
        """The scopes that the next login to the server should ask for besides."""
        return self._server.wanted_scopes

    async def discover(self) -> Sequence[Offer]:
        """What the server offers; waits until it is clear whether it answers at all."""
        await self._server.settled()
        if self._server.session is None:
            raise Unavailable(f"the server {self._server.problem}")
        return await self._catalog.offers()

    def distrust(self, flags: Mapping[str, tuple[str, ...]]) -> bool:
        """Hear which definitions speak of the tools of others; the next discovery holds them back."""
        return self._catalog.distrust(flags)

    def last_known(self) -> Sequence[Offer]:
        """The tools that it had when it was last heard of."""
        return self._catalog.last_known("the server did not answer yet")

    async def call(self, call: Call) -> Result:
        """Call a tool of the server, once; what may have arrived is never sent again."""
        tool = call.granted
        front: CallFront | None = None
        if self._elicitation or call.client is not None:
            front = CallFront(self.name, call, may_ask=self._elicitation, secrets=self._secrets)

        async def ask(session: Session) -> tuple[Message, CatalogEntry]:
            entry = self._catalog.entry(tool)  # when the answer comes, the tool may be another or gone
            return await self._asked(session, call, entry, front), entry

        return await self._bounded(
            call, partial(self._gate, tool, share_of(call)), ask, lambda answer: self._read(call, *answer), front
        )

    async def _asked(self, session: Session, call: Call, entry: CatalogEntry, front: CallFront | None) -> Message:
        """The answer to a call; what the server asks meanwhile is put to who made the call."""
        progress = _progress_of(call)
        send = partial(
            session.call_tool,
            entry.tool.own_name,
            call.arguments,
            whose=share_of(call),
            mirrors=entry.mirrors,
            progress=progress,
            front=front,
        )
        if front is None:
            return await send()
        if front.log_level is not None:
            await session.hear_log(front.log_level)
        if not front.may_ask:
            return await send()
        if not session.era.modern:
            return await _answering(front, send)
        answer = await send()
        while answer.get("resultType") == "input_required":
            answer = await send(more=await front.fulfilled(answer))
        return answer

    async def resources(self) -> Sequence[Message]:
        """The resources that the server lists."""
        return [one.definition for one in await self._resources.latest()]

    async def resource_templates(self) -> Sequence[Message]:
        """The templates of resources that the server lists."""
        return [one.definition for one in await self._templates.latest()]

    async def read_resource(self, call: Call, uri: str) -> Result:
        """Read a resource, within the same bounds as a call of a tool."""

        async def ask(session: Session) -> Message:
            progress = _progress_of(call)
            return await session.read_resource(uri, progress=progress)

        gate = partial(self._well, share_of(call))
        try:
            return await self._bounded(call, gate, ask, partial(self._read_contents, call))
        except UpstreamFailed as failure:
            if failure.facts.get("upstreamCode") not in _NO_RESOURCE:
                raise
            raise ResourceNotFound(uri) from None

    def follow(self, tell: Callable[[Listed], None]) -> Callable[[], None]:
        """Hear when what it lists beside its tools may have changed, until the answer is called."""
        return self._server.news.follow(tell)

    def _list_changed(self, what: Listed) -> None:
        for kept in (self._prompts,) if what == "prompts" else (self._resources, self._templates):
            kept.changed()

    def watch(self, uri: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Hear of changes of a resource from now on, as soon as the server agrees; the answer ends it."""
        return self._server.subscriptions.add(uri, tell)

    async def confirm_watch(self, call: Call, uri: str) -> Result:
        """Wait until the server agreed to tell of a resource that is watched."""

        async def ask(session: Session) -> Result:
            if not session.tells_updates:
                raise UpstreamFailed(
                    f"Server {self.name!r} does not tell of changes of its resources. Read it again instead.",
                    reason="not_watchable",
                )
            try:
                await self._server.subscriptions.confirmed(session, uri)
            except Rejected as fault:
                if fault.code not in _NO_RESOURCE:
                    raise
                raise ResourceNotFound(uri) from None
            return {}

        return await self._bounded(call, partial(self._well, share_of(call)), ask, lambda answer: answer)

    @property
    def instructions(self) -> str:
        """How the server says that it wants to be used: for the operator alone, as a stranger's text."""
        session = self._server.session
        if session is None or not session.instructions:
            return ""
        return visible(self._secrets.scrub_text(brief(session.instructions, self._secrets.beginning)))

    @property
    def last_words(self) -> Sequence[str]:
        """The last lines of its error output, scrubbed; none where it is reached over HTTP."""
        return tuple(self._server.last_words)

    def restart(self) -> None:
        """Connect to the server anew, at once."""
        self._server.restart()

    @property
    def messages(self) -> Mapping[str, int]:
        """How much the server logged by way of the protocol, by level."""
        return self._server.log.counts

    async def prompts(self) -> Sequence[OfferedDefinition]:
        """The prompts that the server lists."""
        return await self._prompts.latest()

    async def get_prompt(self, call: Call, own_name: str, arguments: Mapping[str, str]) -> Result:
        """Get a prompt, within the same bounds as a call of a tool."""

        async def ask(session: Session) -> Message:
            progress = _progress_of(call)
            return await session.get_prompt(own_name, arguments, progress=progress)

        return await self._bounded(call, partial(self._well, share_of(call)), ask, partial(self._read_messages, call))

    async def complete(self, call: Call, asked: Message) -> Result:
        """Ask what the server suggests for an argument, within the same bounds as a call of a tool."""

        async def ask(session: Session) -> Message:
            return await session.complete(asked)

        def read(answer: Message) -> Result:
            check_completion(answer)
            return completion_of(answer)

        return await self._bounded(call, partial(self._well, share_of(call)), ask, read)

    async def _bounded(
        self,
        call: Call,
        gate: Callable[[], Session],
        ask: Callable[[Session], Awaitable[_Answer]],
        read: Callable[[_Answer], Result],
        front: CallFront | None = None,
    ) -> Result:
        """Ask the server if `gate` opens: in turn, in time, and with an answer that can be read."""
        try:
            if not await self._server.settled(self._timeout):
                raise self._failure("is still being connected", "upstream_unavailable", retryable=True)
            gate()
            place = await self._shares.take(share_of(call), self._timeout)
            try:
                # The server's time begins now: what a call spent in line is no fault of the server.
                with anyio.move_on_after(self._timeout) as scope:
                    if front is not None:
                        front.scope = scope
                    return read(await self._exchange(call, gate, ask))
                self._breakers.timed_out(share_of(call))
                self._server.freshness.look()
                raise UpstreamFailed(
                    f"{call.name} gave no answer within {self._timeout:g} s.{_advice(call)}", reason="timeout"
                )
            finally:
                place.give_back()
        except Overdue:
            raise self._failure("has too many calls waiting", "upstream_busy", retryable=True) from None
        except Nonsense as fault:
            raise self._failure(f"{fault}.{_advice(call)}", "bad_result") from None

    async def _exchange(
        self, call: Call, gate: Callable[[], Session], ask: Callable[[Session], Awaitable[_Answer]]
    ) -> _Answer:
        """The server's answer to what is still open to the agent when its turn comes."""
        await self._server.freshness.wait()
        for _ in range(2):
            session = gate()
            try:
                return await self._send(session, call, ask)
            except Expired:  # refused unread, so that it may be sent once more
                self._server.forget(session)
                await self._server.settled()
        raise self._failure("does not keep its sessions", "upstream_unavailable", retryable=True)

    async def _send(self, session: Session, call: Call, ask: Callable[[Session], Awaitable[_Answer]]) -> _Answer:
        try:
            with self._breakers.watching(share_of(call)):
                return await ask(session)
        except (Expired, Nonsense):
            raise
        except Rejected as fault:
            text = brief(fault.text, self._secrets.beginning) or "it did not say why"
            raise UpstreamFailed(
                f"Server {self.name!r} refused the call: {text}", reason="upstream_rejected", upstreamCode=fault.code
            ) from None
        except Busy as fault:
            facts = {"retryAfter": fault.retry_after}
            raise self._failure(str(fault), "upstream_unavailable", retryable=True, **facts) from None
        except ScopeMissing as fault:
            raise RightsMissing(server=self.name, what=str(fault), scopes=fault.scopes) from None
        except (Unsent, Misconfigured) as fault:
            self._server.freshness.look()
            raise self._failure(str(fault), "upstream_unavailable", retryable=isinstance(fault, Unsent)) from None
        except Fault as fault:
            self._server.freshness.look()
            raise self._failure(f"{fault}.{_advice(call)}", "upstream_unavailable") from None

    def _gate(self, tool: Tool, agent: str) -> Session:
        """The session, if the server is well and the tool still defined as it was when the agent got it."""
        session = self._well(agent)
        if self._catalog.is_current(tool):
            return session
        if not self._catalog.lists(tool.own_name):
            raise ToolNotFound(tool.spec.name, ())
        raise Forbidden(
            f"The server changed the definition of {tool.spec.name} since it was given to this agent. The operator "
            "looks at the change with 'toolgrove pins' and accepts it or not; do not retry.",
            reason="definition_changed",
        )

    def _well(self, agent: str) -> Session:
        """The session, if the server is well."""
        server = self._server
        if server.session is None:
            wait = server.retry_after()
            raise self._failure(server.problem, "upstream_unavailable", retryable=True, retryAfter=wait)
        refusal = self._breakers.refusal(agent)
        if refusal is not None:
            raise self._failure("failed too often", "upstream_unavailable", retryable=True, retryAfter=refusal)
        return server.session

    def _read_contents(self, call: Call, answer: Message) -> Result:
        """What was read, as the server gave it."""
        check_contents(answer)
        if is_impostor(answer):
            call.note_change(POLICY)
        return resource_of(answer)

    def _read_messages(self, call: Call, answer: Message) -> Result:
        """A prompt, as the server gave it."""
        check_messages(answer)
        if is_impostor(answer):
            call.note_change(POLICY)
        return prompt_of(answer)

    def _read(self, call: Call, answer: Message, entry: CatalogEntry) -> Result:
        """The result of an answer, as the server gave it; a failure of the tool's own is raised with it."""
        check(answer, entry.valid)
        if is_impostor(answer):
            call.note_change(POLICY)
        if is_error(answer):
            raise failure_of(answer, self._secrets.beginning)
        return result_of(answer)

    def _failure(self, what: str, reason: str, *, retryable: bool = False, **facts: float | None) -> UpstreamFailed:
        advice = " Try again in a moment." if retryable else ""
        end = "" if what.endswith(".") else "."
        return UpstreamFailed(f"Server {self.name!r} {what}{end}{advice}", reason=reason, retryable=retryable, **facts)


async def _answering(front: CallFront, send: Callable[[], Awaitable[Message]]) -> Message:
    """The answer to a request, while the questions of the handshake era are answered beside it."""
    ended: list[Message | Exception] = []
    async with anyio.create_task_group() as tasks:
        with front.answering(tasks):
            try:
                ended.append(await send())
            except Exception as problem:  # raised again outside of the task group, which would wrap it
                ended.append(problem)
    if isinstance(ended[0], Exception):
        raise ended[0]
    return ended[0]


def _progress_of(call: Call) -> Progress | None:
    """Who hears how far the server is; asking for it in vain would keep the server from a plain answer."""
    client = call.client
    return client.progress if client is not None and getattr(client, "hears_progress", True) else None


def _advice(call: Call) -> str:
    """What to do after a failure in the middle; to read once more harms nobody."""
    return "" if call.name in (READ_RESOURCE, GET_PROMPT, COMPLETE, SUBSCRIBE) else _MAY_HAVE_RUN
