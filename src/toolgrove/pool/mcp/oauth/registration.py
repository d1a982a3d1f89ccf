"""Which client we are to an authorization server: one that the operator names, one by its document, or a new one."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl, ValidationError

from toolgrove.config import OAuthConfig
from toolgrove.pool.mcp.faults import Misconfigured, Nonsense
from toolgrove.pool.mcp.oauth.discovery import Authority
from toolgrove.pool.mcp.oauth.web import Web

_METHODS = ("none", "client_secret_post", "client_secret_basic")


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """A client, and how it proves at the token endpoint who it is; `made` is whether it was registered just now."""

    id: str
    secret: str | None = field(default=None, repr=False)
    auth: str = "none"
    made: bool = False


def given_client(metadata: OAuthMetadata, client_id: str, secret: str | None) -> Client:
    """The client that the operator names."""
    if secret is None:
        return Client(id=client_id)
    supported = metadata.token_endpoint_auth_methods_supported
    posts = supported is not None and "client_secret_basic" not in supported
    return Client(id=client_id, secret=secret, auth="client_secret_post" if posts else "client_secret_basic")


async def client_at(
    web: Web, authority: Authority, config: OAuthConfig, redirect: str, *, client_id: str | None, secret: str | None
) -> Client:
    """The client for a person's login."""
    metadata = authority.metadata
    if client_id is not None:
        return given_client(metadata, client_id, secret)
    if config.client_metadata_url is not None and metadata.client_id_metadata_document_supported:
        return Client(id=config.client_metadata_url)
    if metadata.registration_endpoint is None:
        raise Misconfigured("takes no new clients by itself: register one there, and write its id into oauth.clientId")
    return await _registered(web, authority, redirect)


async def _registered(web: Web, authority: Authority, redirect: str) -> Client:
    supported = authority.metadata.token_endpoint_auth_methods_supported
    auth = next((method for method in _METHODS if supported is None or method in supported), "none")
    asked = OAuthClientMetadata.model_validate(
        {
            "client_name": "Toolgrove",
            "redirect_uris": [AnyUrl(redirect)],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": auth,
            "scope": authority.scope,
        }
    )
    content = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    reply = await web.post_json(str(authority.metadata.registration_endpoint), content)
    if reply.status not in (200, 201):
        raise Misconfigured(
            f"did not take us as a new client (HTTP {reply.status}): register one there, and write its id into "
            "oauth.clientId"
        )
    try:
        made = OAuthClientInformationFull.model_validate(reply.content())
    except ValidationError:
        raise Nonsense("has an authorization server whose answer to a registration cannot be read") from None
    method = made.token_endpoint_auth_method or ("none" if made.client_secret is None else auth)
    if method not in _METHODS or (method != "none" and made.client_secret is None):
        raise Misconfigured("registered us as a client that has to prove itself in a way that we do not know")
    return Client(id=made.client_id, secret=made.client_secret, auth=method, made=True)
