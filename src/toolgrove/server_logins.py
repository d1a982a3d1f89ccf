"""Logins to MCP servers that a person makes in a browser, begun and answered in a gateway that runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from anyio import to_thread

from toolgrove.config import Config
from toolgrove.errors import InvalidArgument, UpstreamFailed
from toolgrove.pool.host import Resolve, resolve_host
from toolgrove.pool.mcp import McpSource
from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.oauth.target import LoginTarget, target_of
from toolgrove.pool.offer import PoolSource
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Logins
from toolgrove.types import Clock

if TYPE_CHECKING:
    from toolgrove.pool.mcp.oauth.attempt import Answer, Attempt

LIFETIME = 600.0
"""Seconds in which a browser must come back."""
_MOST = 20


class ServerLogins:
    """Keeps the questions that were asked; each takes one answer, and only the newest for a server counts."""

    def __init__(
        self,
        config: Callable[[], Config],
        secrets: Secrets,
        logins: Logins,
        clock: Clock,
        *,
        source: Callable[[str], PoolSource | None],
        resolve: Resolve = resolve_host,
    ) -> None:
        self._config = config
        self._secrets = secrets
        self._logins = logins
        self._clock = clock
        self._source = source
        self._resolve = resolve
        self._asked: dict[str, tuple[float, Attempt]] = {}

    async def begin(self, server: str, redirect: str) -> str:
        """The address at which a person agrees; the browser comes back to `redirect`."""
        source = self._source(server)
        scope = source.wanted_scopes if isinstance(source, McpSource) else None
        # Aside: the client of `mcp` takes long to import, and a keyring may ask a person first.
        oauth = await to_thread.run_sync(import_module, "toolgrove.pool.mcp.oauth.attempt")
        target = await to_thread.run_sync(self._target, server)
        try:
            attempt: Attempt = await oauth.begin(
                target, redirect, clock=self._clock, scope=scope, before=self._logins.of(server)
            )
        except Fault as fault:
            raise self._failed(server, fault) from None
        self._drop_old()
        self._asked[server] = self._clock.monotonic(), attempt
        return attempt.question

    async def finish(self, given: Answer, *, by: str) -> str:
        """Keep the login that an answer stands for; the server that it is to."""
        self._drop_old()
        server = next((name for name, (_, attempt) in self._asked.items() if attempt.is_asked_by(given)), None)
        if server is None:
            raise InvalidArgument("This is not the answer to a login that was begun here, or it came too late.")
        _, attempt = self._asked.pop(server)
        try:
            login = await attempt.login(given)
        except Fault as fault:
            raise self._failed(server, fault) from None
        self._logins.begin(login, by=by)
        return server

    def _target(self, server: str) -> LoginTarget:
        return target_of(self._config(), server, self._secrets, self._resolve)

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        kept = [(name, one) for name, one in self._asked.items() if now - one[0] < LIFETIME]
        self._asked = dict(kept[-_MOST:])

    def _failed(self, server: str, fault: Fault) -> UpstreamFailed:
        said = self._secrets.scrub_text(str(fault))
        return UpstreamFailed(f"Server {server!r} {said}.", reason="login_failed")
