"""The token that a running gateway sends to one server: taken from the state, renewed in time, never sent elsewhere."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace

import anyio
from anyio import to_thread

from toolgrove.config import OAuthConfig
from toolgrove.pool.mcp.connection import Reach
from toolgrove.pool.mcp.faults import Fault, Misconfigured, Unsent
from toolgrove.pool.mcp.oauth.discovery import authority_of
from toolgrove.pool.mcp.oauth.ending import revoke
from toolgrove.pool.mcp.oauth.grants import Refused, by_client_secret, by_refresh_token
from toolgrove.pool.mcp.oauth.registration import given_client
from toolgrove.pool.mcp.oauth.web import Web, is_private_way
from toolgrove.pool.mcp.scopes import union
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Login, Logins, MemoryLogins
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
_EARLY = 60.0
"""Seconds before its end in which a token is renewed; a tenth of its life where that is short."""
LOOK = 1.0
"""Seconds between two looks for a login, while there is none."""


class Bearer:
    """Gives one server's token; who finds it stale renews it once for all."""

    def __init__(
        self,
        server: str,
        config: OAuthConfig,
        *,
        logins: Logins,
        secrets: Secrets,
        reach: Reach,
        clock: Clock,
        filled: Callable[[str, str], str],
    ) -> None:
        self._server = server
        self._config = config
        self._by_itself = config.grant == "client_credentials"
        # What a client gets for itself is asked for anew at each start, and kept nowhere.
        self._logins: Logins = MemoryLogins(clock) if self._by_itself else logins
        self._secrets = secrets
        self._web = Web(reach, clock)
        self._clock = clock
        self._filled = filled
        self._one = anyio.Lock()
        self._seen: Login | None = None
        self._url = ""
        self._headers: Mapping[str, str] = {}
        self._old_sse = False
        self._wanted: tuple[str, ...] = ()
        self._too_little: str | None = None
        self._lacking = anyio.Event()

    @property
    def wanted(self) -> str | None:
        """The scopes that the server wants besides those of the login that was last used."""
        return union(*self._wanted)

    @property
    def notice(self) -> str:
        """What the operator must do so that every call gets through; empty if nothing."""
        return f"needs more rights for some calls: {self._todo()}" if self._lacking.is_set() else ""

    def at(self, url: str, headers: Mapping[str, str], *, old_sse: bool) -> None:
        """Take the address that the server has now, before it is used."""
        if not is_private_way(url):
            raise Misconfigured("has a url without https, over which no token is sent")
        self._url, self._headers, self._old_sse = url, headers, old_sse

    async def token(self) -> str:
        """The token for a request; Misconfigured says that a person has to log in."""
        login = self._login()
        if login is None or self._is_due(login):
            login = await self._renewed(login)
        return login.access_token

    async def renew(self, refused: str) -> bool:
        """Whether there is another token than the one that the server refused."""
        login = self._login()
        if login is not None and login.access_token == refused:
            login = await self._renewed(login)
        return login is not None and login.access_token != refused

    def lacks(self, scopes: tuple[str, ...]) -> str:
        """Hear that the token lacks scopes; what the operator must do."""
        self._wanted = tuple(dict.fromkeys((*self._wanted, *scopes)))
        self._too_little = None if self._seen is None else self._seen.scope
        if not self._lacking.is_set():
            self._lacking.set()
            log.warning("server %s %s", self._server, self.notice)
        return self._todo()

    async def lacking(self) -> None:
        """Wait until the login lacks a scope."""
        await self._lacking.wait()

    async def enriched(self) -> None:
        """Wait until there is a login of another scope than the one that lacks some."""
        while True:
            await anyio.sleep(LOOK)
            try:
                login = self._logins.of(self._server)
            except OSError:
                continue
            if login is None or login.scope != self._too_little:
                self._wanted, self._lacking = (), anyio.Event()
                return

    def _todo(self) -> str:
        if self._by_itself:
            return f"add what it needs to oauth.scopes of mcpServers.{self._server}"
        scopes = f" --scope {shlex.quote(' '.join(self._wanted))}" if self._wanted else ""
        return f"log in with toolgrove login {self._server}{scopes}"

    async def news(self) -> None:
        """Wait until there is another login than the last one that was used."""
        while True:
            await anyio.sleep(LOOK)
            try:
                login = self._logins.of(self._server)
            except OSError:
                continue
            if login is not None and login != self._seen:
                return

    def _login(self) -> Login | None:
        """What the state has now, if it is for the address that the file names now."""
        try:
            login = self._logins.of(self._server)
        except OSError as problem:
            log.error("server %s: its login cannot be read: %s", self._server, problem)
            raise Misconfigured("has a login that cannot be read now; the log has the detail") from None
        if login is not None and login != self._seen:
            self._hide(login)
        self._seen = login
        return login if login is not None and login.url == self._url else None

    def _hide(self, login: Login) -> None:
        for kind, value in (
            ("access_token", login.access_token),
            ("refresh_token", login.refresh_token),
            ("client_secret", login.client_secret),
        ):
            if value:
                self._secrets.hide(value, name=f"{self._server}.{kind}")

    def _is_due(self, login: Login) -> bool:
        if login.expires_at is None:
            return False
        early = min(_EARLY, (login.expires_at - login.made_at) / 10)
        return self._clock.wall() >= login.expires_at - early

    async def _renewed(self, stale: Login | None) -> Login:
        async with self._one:
            login = self._login()
            if login is not None and login != stale:  # somebody else was faster, here or in another process
                return login
            if self._by_itself:
                return await self._asked_for_itself()
            if login is None:
                raise self._logged_out()
            if login.refresh_token is None:
                if self._is_due(login) and not self._is_over(login):
                    return login
                raise self._logged_out()
            with anyio.CancelScope(shield=True):  # or a new refresh token would be lost with the call that got it
                login = await self._refreshed(login)
            return login

    async def _refreshed(self, login: Login) -> Login:
        secret = await self._secret() if login.client_secret is None and login.client_auth != "none" else None
        try:
            new = await by_refresh_token(self._web, login, secret=secret, now=self._clock.wall())
        except Refused:
            # Not asked again: what is refused once stays so.
            new = replace(login, refresh_token=None, expires_at=self._clock.wall())
        except Unsent:
            if self._is_over(login):
                raise
            log.warning("server %s: its token could not be renewed; it is still good for a while", self._server)
            return login
        self._hide(new)
        try:
            kept = self._seen = self._logins.renew(login, new)
        except OSError as problem:
            log.error("server %s: its renewed login cannot be kept: %s", self._server, problem)
            return new
        if kept is None:  # somebody logged out meanwhile, who cannot have told of this token
            await revoke(self._web, new, secret=secret)
        if kept is None or (kept.refresh_token is None and self._is_over(kept)):
            raise self._logged_out()
        return kept

    async def _asked_for_itself(self) -> Login:
        web, config = self._web, self._config
        authority = await authority_of(web, self._url, config, headers=self._headers, old_sse=self._old_sse)
        client_id = await to_thread.run_sync(self._filled, config.client_id or "", "oauth.clientId")
        client = given_client(authority.metadata, client_id, await self._secret())
        started = Login(
            server=self._server,
            url=self._url,
            resource=authority.resource,
            issuer=authority.issuer,
            token_endpoint=authority.token_endpoint,
            client_id=client.id,
            client_auth=client.auth,
            client_secret=client.secret,
            access_token="",
            made_at=self._clock.wall(),
        )
        login = await by_client_secret(web, authority, started, now=self._clock.wall())
        login = self._seen = replace(login, refresh_token=None)
        self._hide(login)
        self._logins.begin(login)
        return login

    async def _secret(self) -> str | None:
        secret = self._config.client_secret
        return None if secret is None else await to_thread.run_sync(self._filled, secret, "oauth.clientSecret")

    def _is_over(self, login: Login) -> bool:
        return login.expires_at is not None and self._clock.wall() >= login.expires_at

    def _logged_out(self) -> Fault:
        return Misconfigured(f"needs a login: log in with toolgrove login {self._server}")
