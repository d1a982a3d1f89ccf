"""What a server's entry in the project file says about a login to it, with its secrets filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolgrove.config import Config, McpServerConfig, OAuthConfig
from toolgrove.errors import InvalidArgument, closest
from toolgrove.pool.host import Resolve, names_loopback
from toolgrove.pool.mcp.connection import Reach, reach_of
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Login

_NAMES = "names an address for logins"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginTarget:
    """A server that a person can log in to, and how far its addresses may lead."""

    server: str
    url: str
    oauth: OAuthConfig
    headers: Mapping[str, str] = field(repr=False)
    old_sse: bool
    client_id: str | None
    client_secret: str | None = field(repr=False)
    reach: Reach


def oauth_of(config: Config, name: str) -> tuple[McpServerConfig, OAuthConfig]:
    """The server of this name, which must have an `oauth` block for people."""
    server = config.mcp_servers.get(name)
    if server is None:
        near = closest(name, config.mcp_servers)
        raise InvalidArgument(f"There is no MCP server {name!r}." + (f" Did you mean {near!r}?" if near else ""))
    if server.url is None:
        raise InvalidArgument(f"{name} is a program on this machine; only a server with a url has a login.")
    if server.oauth is None:
        raise InvalidArgument(f"{name} has no oauth block: add oauth: {{}} to mcpServers.{name}, and log in again.")
    if server.oauth.grant == "client_credentials":
        raise InvalidArgument(f"{name} logs in by itself, with grant client_credentials; there is nothing to do.")
    return server, server.oauth


def target_of(config: Config, name: str, secrets: Secrets, resolve: Resolve) -> LoginTarget:
    """Where a person logs in to the server of this name; a secret that is not set is an error."""
    server, oauth = oauth_of(config, name)

    def filled(template: str, part: str) -> str:
        return secrets.fill(template, field=f"mcpServers.{name}.{part}", user=f"{name}_*")

    return LoginTarget(
        server=name,
        url=filled(server.url or "", "url"),
        oauth=oauth,
        headers={key: filled(value, f"headers.{key}") for key, value in server.headers.items()},
        old_sse=server.type == "sse",
        client_id=None if oauth.client_id is None else filled(oauth.client_id, "oauth.clientId"),
        client_secret=None if oauth.client_secret is None else filled(oauth.client_secret, "oauth.clientSecret"),
        reach=reach_of(name, server, resolve, names=_NAMES),
    )


def reach_of_login(login: Login, server: McpServerConfig | None, resolve: Resolve) -> Reach:
    """How far the addresses of a login may lead, also where the project file has its server no more."""
    if server is not None:
        return reach_of(login.server, server, resolve, names=_NAMES)
    return Reach(
        entry=f"mcpServers.{login.server}",
        resolve=resolve,
        allow_private=False,
        allow_loopback=names_loopback(login.url),
        names=_NAMES,
    )
