"""From a code, a refresh token or a client's secret to a login."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from toolgrove.pool.mcp.faults import Misconfigured, Nonsense, Unsent
from toolgrove.pool.mcp.oauth.discovery import Authority
from toolgrove.pool.mcp.oauth.web import Web
from toolgrove.store.state import Login

_LEGAL = frozenset(map(chr, range(0x21, 0x7F)))


class Refused(Misconfigured):
    """The authorization server gives no token for what we sent."""


async def by_code(
    web: Web, authority: Authority, started: Login, *, code: str, verifier: str, redirect: str, now: float
) -> Login:
    """The login that a code stands for; `started` has everything but the tokens."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return _taken(started, await _token(web, started, form), now, scope=authority.scope)


async def by_refresh_token(web: Web, login: Login, *, secret: str | None, now: float) -> Login:
    """The login again, with a new token; `secret` is the client's where the project file has it."""
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token or ""}
    token = await _token(web, login, form, secret=secret)
    return _taken(login, token, now, scope=login.scope)


async def by_client_secret(web: Web, authority: Authority, started: Login, *, now: float) -> Login:
    """The login of a client for itself."""
    form = {"grant_type": "client_credentials", **({"scope": authority.scope} if authority.scope else {})}
    return _taken(started, await _token(web, started, form), now, scope=authority.scope)


def proving(login: Login, secret: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """How the client of a login proves itself: what is added to the form, and to the headers."""
    secret = secret or login.client_secret
    if secret is None or login.client_auth == "none":
        return {}, {}
    if login.client_auth == "client_secret_post":
        return {"client_secret": secret}, {}
    pair = f"{quote(login.client_id, safe='')}:{quote(secret, safe='')}"
    return {}, {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


async def _token(web: Web, login: Login, form: Mapping[str, str], *, secret: str | None = None) -> OAuthToken:
    proof, headers = proving(login, secret)
    form = {**form, "resource": login.resource, "client_id": login.client_id, **proof}
    reply = await web.post_form(login.token_endpoint, form, headers)
    if reply.status >= 500 or reply.status == 429:
        raise Unsent(f"has an authorization server that answered with HTTP {reply.status}")
    if reply.status not in (200, 201):
        raise Refused(f"has an authorization server that gave us no token (HTTP {reply.status})")
    try:
        token = OAuthToken.model_validate(reply.content())
    except ValidationError:
        raise Nonsense("has an authorization server whose token cannot be read") from None
    if not token.access_token or not _LEGAL.issuperset(token.access_token):
        raise Nonsense("has an authorization server whose token HTTP cannot carry")
    return token


def _taken(login: Login, token: OAuthToken, now: float, *, scope: str | None) -> Login:
    return replace(
        login,
        access_token=token.access_token,
        refresh_token=token.refresh_token or login.refresh_token,
        scope=token.scope or scope,
        made_at=now,
        expires_at=None if token.expires_in is None else now + token.expires_in,
    )
