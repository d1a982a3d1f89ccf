"""One external MCP server as a source of the pool: kept alive, listed, called."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence

import anyio

from toolgrove.config import McpServerConfig
from toolgrove.errors import Forbidden, SecretOutOfScope, SecretUnset, ToolNotFound, UpstreamFailed
from toolgrove.pool.mcp.backoff import Backoff
from toolgrove.pool.mcp.breaker import Breaker
from toolgrove.pool.mcp.bulkhead import Bulkhead, Full
from toolgrove.pool.mcp.catalog import Catalog
from toolgrove.pool.mcp.child import Command
from toolgrove.pool.mcp.faults import Broken, Busy, Expired, Fault, Misset, Nonsense, Rejected, Unsent
from toolgrove.pool.mcp.freshness import Freshness
from toolgrove.pool.mcp.http import HttpLink
from toolgrove.pool.mcp.link import Link
from toolgrove.pool.mcp.result import brief, content_of, failure_of, is_error, result_of
from toolgrove.pool.mcp.session import Negotiation, Session
from toolgrove.pool.mcp.stdio import StdioLink
from toolgrove.pool.mcp.wire import Message, Progress
from toolgrove.pool.offer import Offer, Unavailable
from toolgrove.pool.secrets import Secrets
from toolgrove.store.pins import Pins
from toolgrove.types import Call, Clock, Kind, Result, SystemClock, Tool

log = logging.getLogger("toolgrove.pool")
START = 60.0
RELIST = 300.0
_DEBOUNCE = 0.25
_RENEWED = 1.0
_MAY_HAVE_RUN = "It may have run all the same: look before you call it again."
_SHARE = 20  # listing takes at most one part in so many of our time, however often the server asks for it


class McpSource:
    """Supervises one server; a call never waits for a server that is down."""

    kind: Kind = "mcp"

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        *,
        secrets: Secrets,
        pins: Pins,
        clock: Clock | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._config = config
        self._secrets = secrets
        self._clock = clock or SystemClock()
        self._random = random
        self._catalog = Catalog(self, pins=pins, secrets=secrets)
        self._negotiation = Negotiation(config.protocol)
        self._backoff = Backoff(random)
        self._breaker = Breaker(self._clock, random)
        self._bulkhead = Bulkhead(config.concurrency)
        self._freshness = Freshness()
        self._session: Session | None = None
        self._problem = "is not started"
        self._retry_at = 0.0
        self._settled = anyio.Event()

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the server connected until we are cancelled."""
        while True:
            begun = self._clock.monotonic()
            try:
                fault = await self._live(changed)
            except Exception:
                log.exception("server %s: its connection failed", self.name)
                fault = Broken("could not be used; the log has the detail")
            lived = self._clock.monotonic() - begun
            log.warning("server %s %s", self.name, fault)
            if isinstance(fault, Expired) and lived > _RENEWED:
                continue  # nothing is wrong with the server; calls that were refused wait for the new session
            pause = self._backoff.pause(lived)
            self._problem, self._retry_at = str(fault), self._clock.monotonic() + pause
            self._settled.set()
            changed()
            await anyio.sleep(pause)

    async def discover(self) -> Sequence[Offer]:
        """What the server offers; waits until it is clear whether it answers at all."""
        await self._settled.wait()
        if self._session is None:
            raise Unavailable(f"the server {self._problem}")
        return self._catalog.offers()

    def last_known(self) -> Sequence[Offer]:
        """The tools that it had when it was last heard of."""
        return self._catalog.last_known("the server did not answer yet")

    async def _live(self, changed: Callable[[], None]) -> Fault:
        """One connection from its beginning to its end; the answer is why it ended."""
        async with anyio.create_task_group() as tasks:
            link: Link | None = None
            try:
                link = self._link()
                link.changed = self._freshness.stale
                await link.open(tasks)
                session = await self._greeted(link)
                self._session = session
                self._settled.set()
                changed()
                tasks.start_soon(session.follow)
                tasks.start_soon(self._keep_listed, session, changed)
                fault = await link.end.wait()
            except (SecretUnset, SecretOutOfScope) as raised:
                fault = Misset(f"cannot be started: {raised.message}")
            except Broken as raised:
                fault = Broken(f"{raised} during start-up")
            except Fault as raised:
                fault = raised
            finally:
                self._session = None
                if self._settled.is_set():
                    self._settled = anyio.Event()
                if link is not None:
                    with anyio.CancelScope(shield=True):
                        await link.close()
                tasks.cancel_scope.cancel()
        return fault

    async def _greeted(self, link: Link) -> Session:
        with anyio.move_on_after(START):
            session = await self._negotiation.session(link)
            self._catalog.take(await session.list_tools())
            return session
        raise Broken(f"did not answer within {START:g} s")

    async def _keep_listed(self, session: Session, changed: Callable[[], None]) -> None:
        """List the tools again whenever they may have changed, but never in a frenzy."""
        while True:
            await self._freshness.word(RELIST)
            mark, begun = self._freshness.begin(), self._clock.monotonic()
            try:
                with anyio.fail_after(self._config.timeout):
                    if self._catalog.take(await session.list_tools()):
                        changed()
            except TimeoutError:
                session.link.end(Broken("did not list its tools in time"))
            except Fault as fault:
                session.link.end(fault)
            finally:
                self._freshness.finish(mark)
            await anyio.sleep(max(_DEBOUNCE, (self._clock.monotonic() - begun) * _SHARE))

    def _link(self) -> Link:
        config = self._config
        if config.url is not None:
            headers = {key: self._filled(value, f"headers.{key}") for key, value in config.headers.items()}
            return HttpLink(self._filled(config.url, "url"), headers, clock=self._clock)
        command = Command(
            program=self._filled(config.command or "", "command"),
            args=[self._filled(value, f"args[{index}]") for index, value in enumerate(config.args)],
            env={key: self._filled(value, f"env.{key}") for key, value in config.env.items()},
            cwd=config.cwd,
        )
        return StdioLink(self.name, command, secrets=self._secrets, clock=self._clock)

    def _filled(self, template: str, field: str) -> str:
        return self._secrets.fill(template, field=f"mcpServers.{self.name}.{field}", user=f"{self.name}_*")

    async def call(self, call: Call) -> Result:
        """Call a tool of the server, once; what may have arrived is never sent again."""
        tool = call.tool
        if tool is None:
            raise ToolNotFound(call.name, call.known)
        with anyio.CancelScope(deadline=anyio.current_time() + self._config.timeout):
            try:
                async with self._bulkhead:
                    return self._read(call, tool, await self._exchange(call, tool))
            except Full:
                raise self._failure("has too many calls waiting", "upstream_busy", retryable=True) from None
            except Nonsense as fault:
                raise self._failure(str(fault), "bad_result") from None
        self._breaker.failed()
        raise UpstreamFailed(
            f"{call.name} gave no answer within {self._config.timeout:g} s. {_MAY_HAVE_RUN}", reason="timeout"
        )

    async def _exchange(self, call: Call, tool: Tool) -> Message:
        """The server's answer to a call of a tool that is still what the agent was given."""
        await self._freshness.wait()
        session = self._up(tool)
        wait = self._breaker.admit()
        if wait is not None:
            raise self._failure("failed too often", "upstream_unavailable", retryable=True, retryAfter=wait)
        try:
            answer = await self._send(session, call, tool)
        except Expired:
            self._breaker.abandoned()
            await self._settled.wait()
            answer = await self._send(self._up(tool), call, tool)  # the first was refused unread
        except anyio.get_cancelled_exc_class():
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()
        return answer

    async def _send(self, session: Session, call: Call, tool: Tool) -> Message:
        mirrors = self._catalog.entry(tool).mirrors
        try:
            return await session.call_tool(
                tool.own_name, call.arguments, mirrors=mirrors, progress=self._progress(call)
            )
        except Rejected as fault:
            self._breaker.succeeded()
            text = self._secrets.scrub_text(brief(fault.text)) or "it did not say why"
            raise UpstreamFailed(
                f"{self.name!r} refused the call: {text}", reason="upstream_rejected", upstreamCode=fault.code
            ) from None
        except Busy as fault:
            self._breaker.succeeded()
            raise self._failure(
                "is busy", "upstream_unavailable", retryable=True, retryAfter=fault.retry_after
            ) from None
        except Expired:
            raise
        except (Unsent, Misset) as fault:
            self._breaker.failed()
            raise self._failure(str(fault), "upstream_unavailable", retryable=isinstance(fault, Unsent)) from None
        except Nonsense:
            self._breaker.failed()
            raise
        except Fault as fault:
            self._breaker.failed()
            raise self._failure(f"{fault}. {_MAY_HAVE_RUN}", "upstream_unavailable") from None

    def _up(self, tool: Tool) -> Session:
        """The session, if there is one and the tool is still defined as it was when the agent got it."""
        session = self._session
        if session is None:
            left = max(self._retry_at - self._clock.monotonic(), 0.5)
            wait = round(left * (1 + self._random() / 2), 3)
            raise self._failure(self._problem, "upstream_unavailable", retryable=True, retryAfter=wait)
        if self._catalog.is_current(tool):
            return session
        if not self._catalog.lists(tool.own_name):
            raise ToolNotFound(tool.spec.name, ())
        raise Forbidden(
            f"The server changed the definition of {tool.spec.name} since it was given to this agent. The operator "
            "looks at the change with 'toolgrove pins' and accepts it or not; do not retry.",
            reason="definition_changed",
        )

    def _read(self, call: Call, tool: Tool, answer: Message) -> Result:
        """The result of an answer, free of secrets; its blocks go along for those who speak MCP."""
        raw = content_of(answer)
        call.content = content = self._secrets.scrub(raw)
        if is_error(answer):
            raise failure_of(self._secrets.scrub(answer), content)
        result = result_of(answer, content, self._catalog.entry(tool).valid)
        return result if result.get("content") is content else self._scrubbed(result)

    def _scrubbed(self, result: Result) -> Result:
        scrubbed: Result = self._secrets.scrub(result)
        return scrubbed

    def _progress(self, call: Call) -> Progress | None:
        client = call.client
        if client is None:
            return None
        scrubber = self._secrets.messages()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            await client.progress(done, total, None if message is None else scrubber.feed(message))

        return progress

    def _failure(self, what: str, reason: str, *, retryable: bool = False, **facts: float | None) -> UpstreamFailed:
        advice = " Try again in a moment." if retryable else ""
        end = "" if what.endswith(".") else "."
        return UpstreamFailed(f"Server {self.name!r} {what}{end}{advice}", reason=reason, retryable=retryable, **facts)
