"""A person's login that has begun: the question that a browser takes along, and what the answer to it is worth."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode, urlsplit

from mcp.client.auth.oauth2 import PKCEParameters

from toolgrove.pool.mcp.faults import Misconfigured
from toolgrove.pool.mcp.oauth.discovery import Authority, authority_of
from toolgrove.pool.mcp.oauth.grants import by_code
from toolgrove.pool.mcp.oauth.registration import Client, client_at
from toolgrove.pool.mcp.oauth.target import LoginTarget
from toolgrove.pool.mcp.oauth.web import Web
from toolgrove.pool.mcp.scopes import union
from toolgrove.store.state import Login
from toolgrove.types import Clock

Answer = Mapping[str, Sequence[str]]
"""The fields after the question mark with which a browser comes back."""


class Attempt:
    """One question with PKCE and a state of its own; only the answer that carries the state is taken."""

    def __init__(
        self, target: LoginTarget, authority: Authority, client: Client, redirect: str, web: Web, clock: Clock
    ) -> None:
        self.server = target.server
        self._target, self._authority, self._client = target, authority, client
        self._redirect, self._web, self._clock = redirect, web, clock
        self._proof, self._state = PKCEParameters.generate(), secrets.token_urlsafe(32)

    @property
    def question(self) -> str:
        """The address at which the person agrees."""
        authority = self._authority
        asked = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._redirect,
            "state": self._state,
            "code_challenge": self._proof.code_challenge,
            "code_challenge_method": "S256",
            "resource": authority.resource,
        }
        if authority.scope is not None:
            asked["scope"] = authority.scope
            if "offline_access" in authority.scope.split():
                asked["prompt"] = "consent"  # as OpenID Connect wants it
        endpoint = str(authority.metadata.authorization_endpoint)
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"

    def is_asked_by(self, given: Answer) -> bool:
        """Whether an answer is to this question."""
        state = given.get("state", ())
        return len(state) == 1 and hmac.compare_digest(state[0].encode(), self._state.encode())

    async def login(self, given: Answer) -> Login:
        """The login that an answer stands for; a Fault says why there is none."""
        authority, client, now = self._authority, self._client, self._clock.wall()
        code = self.code_in(given)
        revocation = authority.metadata.revocation_endpoint
        started = Login(
            server=self.server,
            url=self._target.url,
            resource=authority.resource,
            issuer=authority.issuer,
            token_endpoint=authority.token_endpoint,
            revocation_endpoint=None if revocation is None else str(revocation),
            client_id=client.id,
            client_auth=client.auth,
            client_secret=client.secret,
            access_token="",
            made_at=now,
        )
        login = await by_code(
            self._web,
            authority,
            started,
            code=code,
            verifier=self._proof.code_verifier,
            redirect=self._redirect,
            now=now,
        )
        return login if client.made else replace(login, client_secret=None)  # the file has it

    def code_in(self, given: Answer) -> str:
        """The code of an answer; Misconfigured says why there is none."""
        if "error" in given:
            error = "".join(letter for letter in given["error"][0][:40] if letter.isascii() and letter.isprintable())
            raise Misconfigured(f"has an authorization server that refused the login ({error})")
        issuer = given.get("iss")
        names_issuer = bool(self._authority.metadata.authorization_response_iss_parameter_supported)
        if (issuer is not None or names_issuer) and list(issuer or ()) != [self._authority.issuer]:
            raise Misconfigured("was answered for by another authorization server than the one that was asked")
        code = given.get("code", ())
        if len(code) != 1 or not code[0]:
            raise Misconfigured("has an authorization server that sent no code")
        return code[0]


async def begin(
    target: LoginTarget, redirect: str, *, clock: Clock, scope: str | None = None, before: Login | None = None
) -> Attempt:
    """Ask a server who gives out its tokens, and become a client there; a Fault says what went wrong.

    `scope` is asked for besides what the server needs. So is that of the login `before`, unless the file names scopes.
    """
    web = Web(target.reach, clock)
    authority = await authority_of(web, target.url, target.oauth, headers=target.headers, old_sse=target.old_sse)
    if "S256" not in (authority.metadata.code_challenge_methods_supported or ()):
        raise Misconfigured("has an authorization server without PKCE (S256), which no login is safe without")
    goes_on = before is not None and before.url == target.url and target.oauth.scopes is None
    kept = before.scope if goes_on and before is not None else None
    authority = replace(authority, scope=union(authority.scope, kept, scope))
    client = await client_at(
        web, authority, target.oauth, redirect, client_id=target.client_id, secret=target.client_secret
    )
    return Attempt(target, authority, client, redirect, web, clock)
