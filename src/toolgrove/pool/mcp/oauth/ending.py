"""Telling an authorization server that a login is over: RFC 7009."""

from __future__ import annotations

from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.oauth.grants import proving
from toolgrove.pool.mcp.oauth.web import Web
from toolgrove.store.state import Login


async def revoke(web: Web, login: Login, *, secret: str | None) -> str:
    """Make the tokens of a login void; empty if that was done, else why not, after the server's name."""
    if login.revocation_endpoint is None:
        return "has an authorization server that names no address for ending a login"
    tokens = (("refresh_token", login.refresh_token), ("access_token", login.access_token))
    problem = ""
    for kind, token in tokens:  # the lasting one first: with it, most servers end the other as well
        if token:
            problem = await _revoked(web, login, kind, token, secret) or problem
    return problem


async def _revoked(web: Web, login: Login, kind: str, token: str, secret: str | None) -> str:
    proof, headers = proving(login, secret)
    form = {"token": token, "token_type_hint": kind, "client_id": login.client_id, **proof}
    try:
        reply = await web.post_form(login.revocation_endpoint or "", form, headers)
    except Fault as fault:
        return str(fault)
    return "" if reply.status == 200 else f"has an authorization server that answered with HTTP {reply.status}"
