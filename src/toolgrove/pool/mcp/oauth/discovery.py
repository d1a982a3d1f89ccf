"""Who gives out the tokens for a server, and for what: RFC 9728 and RFC 8414, with OpenID Connect's spelling of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel, ValidationError

from toolgrove.config import OAuthConfig
from toolgrove.pool.mcp.faults import Misconfigured, Nonsense
from toolgrove.pool.mcp.oauth.web import Reply, Web, is_private_way
from toolgrove.pool.mcp.scopes import field_of, union

M = TypeVar("M", bound=BaseModel)
_GREETING = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "toolgrove", "version": "0"},
        },
    }
).encode()
_LISTING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Authority:
    """An authorization server as it describes itself, the resource that we want a token for, and the scope."""

    issuer: str
    metadata: OAuthMetadata
    resource: str
    scope: str | None

    @property
    def token_endpoint(self) -> str:
        """Where tokens are given out."""
        return str(self.metadata.token_endpoint)


async def authority_of(
    web: Web, url: str, config: OAuthConfig, *, headers: Mapping[str, str], old_sse: bool = False
) -> Authority:
    """Ask a server who gives out its tokens, and ask that one how."""
    challenge = await _challenge(web, url, headers, old_sse=old_sse)
    resource, guarding = resource_url_from_server_url(url), None
    for address in build_protected_resource_metadata_discovery_urls(field_of(challenge, "resource_metadata"), url):
        guarding = _read(await web.get(address), ProtectedResourceMetadata)
        if guarding is not None:
            break
    named: str | None = None
    if guarding is not None:
        if not check_resource_allowed(requested_resource=resource, configured_resource=str(guarding.resource)):
            raise Misconfigured("says that its tokens are for another address than its url")
        resource, named = str(guarding.resource), _chosen(guarding, config.issuer)
    issuer, metadata = await _metadata(web, url, named)
    if config.issuer is not None and issuer.rstrip("/") != config.issuer.rstrip("/"):
        raise Misconfigured("names another authorization server than its oauth.issuer in the project file")
    scope = _scope(config, field_of(challenge, "scope"), guarding, metadata)
    return Authority(issuer=issuer, metadata=metadata, resource=resource, scope=scope)


def _chosen(guarding: ProtectedResourceMetadata, wanted: str | None) -> str:
    """The authorization server that the operator wants, if the server names it; else the first."""
    named = [str(url) for url in guarding.authorization_servers]
    return next((url for url in named if wanted is not None and url.rstrip("/") == wanted.rstrip("/")), named[0])


async def _challenge(web: Web, url: str, headers: Mapping[str, str], *, old_sse: bool) -> str:
    """What the server says to somebody who comes without a token; empty if it says nothing.

    Some let everybody greet them, and ask for a token only then.
    """
    accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if old_sse:
        reply = await web.head_of(b"GET", url, {**headers, "accept": "text/event-stream"})
        return reply.headers.get("www-authenticate", "") if reply.status == 401 else ""
    for probe in (_GREETING, _LISTING):
        reply = await web.head_of(b"POST", url, {**headers, **accept}, probe)
        if reply.status == 401:
            return reply.headers.get("www-authenticate", "")
    return ""


async def _metadata(web: Web, url: str, named: str | None) -> tuple[str, OAuthMetadata]:
    """How an authorization server calls itself, to the letter, and what else it says of itself."""
    parts = urlsplit(url)
    expected = named or f"{parts.scheme}://{parts.netloc}"
    for address in build_oauth_authorization_server_metadata_discovery_urls(named, url):
        reply = await web.get(address)
        metadata = _read(reply, OAuthMetadata)
        if metadata is not None:
            break
    else:
        raise Nonsense("does not say how to log in: it has no metadata of an authorization server")
    if str(metadata.issuer).rstrip("/") != expected.rstrip("/"):
        raise Misconfigured("has an authorization server that calls itself by another name than the server does")
    named_by_it = (
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.registration_endpoint,
        metadata.revocation_endpoint,
    )
    if not all(is_private_way(str(endpoint)) for endpoint in named_by_it if endpoint is not None):
        raise Misconfigured("names an address for logins that is neither https nor on this machine")
    return str(reply.content()["issuer"]), metadata


def _read(reply: Reply, model: type[M]) -> M | None:
    if reply.status != 200:
        return None
    try:
        return model.model_validate(reply.content())
    except (ValidationError, Nonsense):
        return None


def _scope(
    config: OAuthConfig, challenged: str | None, guarding: ProtectedResourceMetadata | None, metadata: OAuthMetadata
) -> str | None:
    """What the operator asks for, else what the server needs; and to stay logged in where that is a scope."""
    if config.scopes is not None:
        return " ".join(config.scopes) or None
    supported = None if guarding is None else guarding.scopes_supported
    scope = challenged or " ".join(supported or ()) or None
    lasting = "offline_access" in (metadata.scopes_supported or ()) and config.grant == "authorization_code"
    return union(scope, "offline_access") if scope is not None and lasting else scope
