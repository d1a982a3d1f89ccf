"""A person's login from beginning to end: PKCE, a state, and a browser that comes back to this machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlencode, urlsplit

import anyio
from mcp.client.auth.oauth2 import PKCEParameters

from toolgrove.config import OAuthConfig
from toolgrove.pool.mcp.connection import Reach
from toolgrove.pool.mcp.faults import Misconfigured
from toolgrove.pool.mcp.oauth.callback import Callback, listening, redirect_to
from toolgrove.pool.mcp.oauth.discovery import Authority, authority_of
from toolgrove.pool.mcp.oauth.grants import by_code
from toolgrove.pool.mcp.oauth.registration import client_at
from toolgrove.pool.mcp.oauth.web import Web
from toolgrove.store.state import Login
from toolgrove.types import Clock


async def log_in(
    server: str,
    url: str,
    config: OAuthConfig,
    *,
    headers: Mapping[str, str],
    old_sse: bool,
    client_id: str | None,
    client_secret: str | None,
    reach: Reach,
    clock: Clock,
    show: Callable[[str], None],
    patience: float,
) -> Login:
    """Log in to a server; `show` gets the address that the person opens. A Fault says what went wrong."""
    web = Web(reach, clock)
    authority = await authority_of(web, url, config, headers=headers, old_sse=old_sse)
    if "S256" not in (authority.metadata.code_challenge_methods_supported or ()):
        raise Misconfigured("has an authorization server without PKCE (S256), which no login is safe without")
    async with listening() as (port, waiting):
        redirect = redirect_to(port)
        client = await client_at(web, authority, config, redirect, client_id=client_id, secret=client_secret)
        proof, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
        names_issuer = bool(authority.metadata.authorization_response_iss_parameter_supported)
        callback = Callback(port, state, authority.issuer, names_issuer=names_issuer)
        waiting.append(callback)
        show(_question(authority, client.id, redirect, state, proof.code_challenge))
        with anyio.move_on_after(patience):
            code = await callback.code()
            started = Login(
                server=server,
                url=url,
                resource=authority.resource,
                issuer=authority.issuer,
                token_endpoint=authority.token_endpoint,
                client_id=client.id,
                client_auth=client.auth,
                client_secret=client.secret,
                access_token="",
                made_at=clock.wall(),
            )
            login = await by_code(
                web, authority, started, code=code, verifier=proof.code_verifier, redirect=redirect, now=clock.wall()
            )
            return login if client.made else replace(login, client_secret=None)  # the file has it
    raise Misconfigured(f"was not logged in to within {patience:g} s: nobody came back from the browser")


def _question(authority: Authority, client: str, redirect: str, state: str, challenge: str) -> str:
    """The address at which the person agrees."""
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": authority.resource,
    }
    if authority.scope is not None:
        asked["scope"] = authority.scope
        if "offline_access" in authority.scope.split():
            asked["prompt"] = "consent"  # as OpenID Connect wants it
    endpoint = str(authority.metadata.authorization_endpoint)
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"
