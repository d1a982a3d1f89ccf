"""One external MCP server: connected, listed, and connected again when it is lost."""

from __future__ import annotations

import logging
import math
import os
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from toolgrove.config import McpServerConfig
from toolgrove.errors import SecretOutOfScope, SecretUnset
from toolgrove.pool.host import Resolve
from toolgrove.pool.mcp.backoff import Backoff
from toolgrove.pool.mcp.catalog import Catalog
from toolgrove.pool.mcp.child import Command
from toolgrove.pool.mcp.connection import reach_of
from toolgrove.pool.mcp.faults import Broken, Expired, Fault, Gone, Misconfigured
from toolgrove.pool.mcp.http import HttpLink
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.pool.mcp.link import (
    ACKNOWLEDGED,
    LIST_CHANGED,
    LOGGED,
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    UPDATED,
    Link,
)
from toolgrove.pool.mcp.news import News
from toolgrove.pool.mcp.old_sse import OldSseLink
from toolgrove.pool.mcp.sandbox import ProjectFolders, sandboxed
from toolgrove.pool.mcp.server_log import ServerLog
from toolgrove.pool.mcp.session import Negotiation, Session
from toolgrove.pool.mcp.stdio import StdioLink
from toolgrove.pool.mcp.subscriptions import Subscriptions
from toolgrove.pool.mcp.tool_list_freshness import ToolListFreshness
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.offspring import Offspring
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Logins
from toolgrove.types import Clock

if TYPE_CHECKING:
    from toolgrove.pool.mcp.oauth.bearer import Bearer

log = logging.getLogger("toolgrove.pool")
START = 60.0
RELIST = 300.0
LISTING = 10.0
_DEBOUNCE = 0.25
_LONGEST = 5.0
_SHARE = 20  # listing takes at most one part in so many of our time, however often the server asks for it
_RENEWAL = 5.0
_LISTENING = 0.5
_LAST_WORDS = 20
"""How many lines of its error output are kept for the operator."""


class Server:
    """Has a session while the server is up, else a problem."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        catalog: Catalog,
        *,
        secrets: Secrets,
        clock: Clock,
        random: Callable[[], float],
        resolve: Resolve,
        folders: ProjectFolders,
        misdeeds: Misdeeds,
        offspring: Offspring | None,
        logins: Logins,
    ) -> None:
        self.name = name
        self.session: Session | None = None
        self.problem = "is not started"
        self.freshness = ToolListFreshness()
        self.news = News()
        self.subscriptions = Subscriptions(self.news)
        self.log = ServerLog(name, secrets, clock)
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._config = config
        self._catalog = catalog
        self._secrets = secrets
        self._clock = clock
        self._random = random
        self._resolve = resolve
        self._folders = folders
        self._misdeeds = misdeeds
        self._offspring = offspring
        self._negotiation = Negotiation(
            "legacy" if config.type == "sse" else config.protocol, elicitation=config.elicitation
        )
        self._backoff = Backoff(random)
        self._settled = anyio.Event()
        self._retry_at = 0.0
        self._renewed = float("-inf")
        self._told = ""
        self._bearer = self._made_bearer(logins)
        self._living: anyio.CancelScope | None = None

    @property
    def notice(self) -> str:
        """What the operator should do though the server answers; empty if nothing."""
        return "" if self._bearer is None else self._bearer.notice

    @property
    def wanted_scopes(self) -> str | None:
        """The scopes that the next login should ask for besides."""
        return None if self._bearer is None else self._bearer.wanted

    async def follow_rights(self, changed: Callable[[], None]) -> None:
        """Tell when calls need more rights than the login has, and when they no longer do."""
        while self._bearer is not None:
            await self._bearer.lacking()
            changed()
            await self._bearer.enriched()
            changed()

    def restart(self) -> None:
        """Hang up, or stop waiting, and connect anew at once; calls under way fail, others wait for it."""
        if self._living is not None:
            self._unsettle()
            self._living.cancel()

    async def settled(self, patience: float = math.inf) -> bool:
        """Wait until it is clear whether the server answers; False if it is not within so many seconds."""
        if not self._settled.is_set():  # waiting for what is already true would still cost a turn of the loop
            with anyio.move_on_after(patience):
                await self._settled.wait()
        return self._settled.is_set()

    def retry_after(self) -> float:
        """The seconds until it is tried again, told so that not all come back at once."""
        left = max(self._retry_at - self._clock.monotonic(), 0.5)
        return round(left * (1 + self._random() / 2), 3)

    def forget(self, session: Session) -> None:
        """Stop using a session that the server ended; those who ask wait for the next one."""
        if self.session is session:
            self._unsettle()

    def _unsettle(self) -> None:
        self.session = None
        if self._settled.is_set():
            self._settled = anyio.Event()

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the server connected until we are cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.news.run)
            await self._keep_connected(changed)

    async def _keep_connected(self, changed: Callable[[], None]) -> None:
        while True:
            with anyio.CancelScope() as self._living:
                await self._connect_once(changed)
            if self._living.cancelled_caught:
                log.info("server %s is started again", self.name)
                self.problem, self._backoff = "", Backoff(self._random)
                self._unsettle()

    async def _connect_once(self, changed: Callable[[], None]) -> None:
        """One connection, and the pause after one that failed."""
        begun = self._clock.monotonic()
        try:
            await self._live(changed)
        except Exception:
            log.exception("server %s: its connection failed", self.name)
            self._lose(Broken("could not be used; the log has the detail"))
        if self.problem:
            changed()
            pause = self._backoff.pause(self._clock.monotonic() - begun)
            self._retry_at = self._clock.monotonic() + pause
            with anyio.move_on_after(pause):
                await (anyio.sleep_forever() if self._bearer is None else self._bearer.news())

    async def _live(self, changed: Callable[[], None]) -> None:
        """One connection from its beginning to its end."""
        async with anyio.create_task_group() as tasks:
            link: Link | None = None
            try:
                link = await self._link()
                self._lose(await self._used(link, tasks, changed))
            except Fault as fault:
                self._lose(fault)
            finally:
                self.session = None
                if link is not None:
                    with anyio.CancelScope(shield=True):
                        await link.close()
                self.freshness.reset()
                tasks.cancel_scope.cancel()

    async def _used(self, link: Link, tasks: TaskGroup, changed: Callable[[], None]) -> Fault:
        """Use a connection as long as it lasts; the answer is why it ended."""
        link.changed, link.told = self.freshness.stale, self._told_by_itself
        try:
            await link.open(tasks)
            session = await self._greeted(link, tasks)
        except (Broken, Gone) as fault:
            return Broken(f"{fault} during start-up")
        self.session, self.problem = session, ""
        self._settled.set()
        changed()
        tasks.start_soon(self._keep_listed, session, changed)
        tasks.start_soon(self.subscriptions.keep, session)
        if session.has_resources:  # what it offers may be another now, or be there at last
            self.news.list_changed("resources")
        if session.has_prompts:
            self.news.list_changed("prompts")
        return await link.end.wait()

    def _told_by_itself(self, method: str, params: Message) -> None:
        """Take what the server says without being asked."""
        if method == LIST_CHANGED or (method == ACKNOWLEDGED and not self.subscriptions.acknowledged(params)):
            self.freshness.stale()
        elif method == RESOURCES_CHANGED:
            self.news.list_changed("resources")
        elif method == PROMPTS_CHANGED:
            self.news.list_changed("prompts")
        elif method == UPDATED:
            self.subscriptions.updated(params)
        elif method == LOGGED:
            self.log.take(params)

    def _lose(self, fault: Fault) -> None:
        """Say what is wrong; where only a session is over, nothing is, and those who ask wait for the next one."""
        now = self._clock.monotonic()
        if isinstance(fault, Expired) and now - self._renewed > _RENEWAL:
            self._renewed = now
            self.problem = ""
            self._unsettle()
            return
        level = logging.DEBUG if str(fault) == self._told else logging.WARNING
        log.log(level, "server %s %s", self.name, fault)
        self.session, self.problem = None, str(fault)
        self._told = self.problem
        self._settled.set()

    async def _greeted(self, link: Link, tasks: TaskGroup) -> Session:
        with anyio.move_on_after(START):
            session = await self._negotiation.session(link)
            if session.listens:  # first, so that no change falls between the list and the first word
                tasks.start_soon(session.follow)
                await self.freshness.word(_LISTENING)
            mark = self.freshness.begin()
            await self._catalog.take(await session.list_tools())
            self.freshness.finish(mark)
            return session
        raise Broken(f"did not answer within {START:g} s")

    async def _keep_listed(self, session: Session, changed: Callable[[], None]) -> None:
        """List the tools again whenever they may have changed, but not all the time."""
        missed = False
        while True:
            await self.freshness.word(RELIST)
            mark, begun = self.freshness.begin(), self._clock.monotonic()
            try:
                with anyio.fail_after(min(self._config.timeout, LISTING)):
                    if await self._catalog.take(await session.list_tools()):
                        changed()
                    self.freshness.finish(mark)
                    missed = False
            except (Fault, TimeoutError) as failure:
                if missed:
                    late = Broken("did not list its tools in time")
                    session.link.end(failure if isinstance(failure, Fault) else late)
                missed = True  # once may be the network; calls that must know the list still wait for it
                self.freshness.look()
            spent = self._clock.monotonic() - begun
            await anyio.sleep(_DEBOUNCE if missed else min(max(_DEBOUNCE, spent * _SHARE), _LONGEST))

    async def _link(self) -> Link:
        """The way to the server; its secrets are read now, aside, since a keyring may ask a person first."""
        config = self._config
        if config.url is not None:
            url, headers = await to_thread.run_sync(self._address, config.url, abandon_on_cancel=True)
            if self._bearer is not None:
                self._bearer.at(url, headers, old_sse=config.type == "sse")
            kind = OldSseLink if config.type == "sse" else HttpLink
            return kind(
                self.name,
                url,
                headers,
                reach=reach_of(self.name, config, self._resolve),
                clock=self._clock,
                misdeeds=self._misdeeds,
                authorization=self._bearer,
            )
        command = await to_thread.run_sync(self._command, config.command or "", abandon_on_cancel=True)
        return StdioLink(
            self.name,
            command,
            secrets=self._secrets,
            clock=self._clock,
            misdeeds=self._misdeeds,
            offspring=self._offspring,
            keep=self.last_words.append,
        )

    def _made_bearer(self, logins: Logins) -> Bearer | None:
        if self._config.oauth is None:
            return None
        from toolgrove.pool.mcp.oauth.bearer import Bearer  # noqa: PLC0415  (the client of `mcp` takes long to import)

        return Bearer(
            self.name,
            self._config.oauth,
            logins=logins,
            secrets=self._secrets,
            reach=reach_of(self.name, self._config, self._resolve, names="names an address for logins"),
            clock=self._clock,
            filled=self._filled,
        )

    def _address(self, url: str) -> tuple[str, dict[str, str]]:
        headers = {key: self._filled(value, f"headers.{key}") for key, value in self._config.headers.items()}
        return self._filled(url, "url"), headers

    def _command(self, program: str) -> Command:
        config = self._config
        command = Command(
            program=self._filled(program, "command"),
            args=[self._filled(value, f"args[{index}]") for index, value in enumerate(config.args)],
            env=self._passed() | {key: self._filled(value, f"env.{key}") for key, value in config.env.items()},
            cwd=config.cwd,
        )
        if config.sandbox is None:
            return command
        return sandboxed(command, config.sandbox, server=self.name, folders=self._folders)

    def _passed(self) -> dict[str, str]:
        """Our own variables that it gets as they are; a password in an address, as proxies have it, stays hidden."""
        passed = {name: os.environ[name] for name in self._config.pass_env if name in os.environ}
        for name, value in passed.items():
            password = re.search(r"://[^/@:]*:([^/@]+)@", value)
            if password is not None:
                self._secrets.hide(password[1], name=name)
        return passed

    def _filled(self, template: str, part: str) -> str:
        field = f"mcpServers.{self.name}.{part}"
        try:
            return self._secrets.fill(template, field=field, user=f"{self.name}_*")
        except (SecretUnset, SecretOutOfScope) as error:
            log.warning("%s", error.message)
            unset = isinstance(error, SecretUnset)
            # The receipt is for agents too: it names the field, not the variable or file behind it.
            why = "is not set" if unset else "is not meant for this server"
            raise Misconfigured(f"is not started: the secret in {field} {why}") from None
