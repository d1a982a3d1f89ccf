"""`toolgrove login`: log in to an MCP server that asks for OAuth, in a browser."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from typing import Any

import anyio

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature, whole_number
from toolgrove.config import Config, McpServerConfig, OAuthConfig
from toolgrove.errors import InvalidArgument, UpstreamFailed, closest
from toolgrove.notation.times import to_seconds
from toolgrove.pool.host import resolve_host
from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.server import reach_of
from toolgrove.pool.secrets import Secrets
from toolgrove.project_state import ProjectState
from toolgrove.store.state import Login
from toolgrove.types import SystemClock

_PATIENCE = 300
_seconds = whole_number("a number of seconds from 1 to 3600", low=1, high=3600)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "login",
        parents=[shared],
        help="log in to an MCP server that asks for OAuth",
        description="Log in to an MCP server that has an 'oauth' block in the project file. A browser opens, you agree "
        "there, and it comes back to this command. The tokens are kept in the project's state; a gateway that runs "
        "takes them up by itself.",
    )
    parser.add_argument("server", metavar="SERVER", help="the server's name in the project file")
    parser.add_argument("--no-browser", action="store_true", help="only show the address to open")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=_seconds, default=_PATIENCE, help=f"how long to wait ({_PATIENCE})"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Log in, and keep what came of it."""
    config = load(chosen)
    server, oauth = oauth_of(config, chosen.server)
    if oauth.grant == "client_credentials":
        raise InvalidArgument(
            f"{chosen.server} logs in by itself, with grant client_credentials; there is nothing to do."
        )
    with ProjectState.of(config, make=True) as state:
        login = anyio.run(_login, config, server, oauth, chosen, screen)
        state.logins.begin(login, by=signature())
    until = None if login.expires_at is None else to_seconds(login.expires_at)
    facts = {"server": chosen.server, "issuer": login.issuer, "scope": login.scope, "expiresAt": until}
    facts["renewable"] = login.refresh_token is not None
    lasts = "It is renewed by itself." if login.refresh_token is not None else "It cannot be renewed by itself."
    screen.answer(facts, line(f"Logged in to {chosen.server}. {lasts}"))
    return 0


def oauth_of(config: Config, name: str) -> tuple[McpServerConfig, OAuthConfig]:
    """The server of this name, which must have an `oauth` block."""
    server = config.mcp_servers.get(name)
    if server is None:
        near = closest(name, config.mcp_servers)
        raise InvalidArgument(f"There is no MCP server {name!r}." + (f" Did you mean {near!r}?" if near else ""))
    if server.url is None:
        raise InvalidArgument(f"{name} is a program on this machine; only a server with a url has a login.")
    if server.oauth is None:
        raise InvalidArgument(f"{name} has no oauth block: add oauth: {{}} to mcpServers.{name}, and log in again.")
    return server, server.oauth


async def _login(
    config: Config, server: McpServerConfig, oauth: OAuthConfig, chosen: argparse.Namespace, screen: Screen
) -> Login:
    from toolgrove.pool.mcp.oauth.browser import log_in  # noqa: PLC0415  (the client of `mcp` takes long to import)

    name: str = chosen.server
    secrets = Secrets(config.secrets, folder=config.folder)

    def filled(template: str, part: str) -> str:
        return secrets.fill(template, field=f"mcpServers.{name}.{part}", user=f"{name}_*")

    def show(address: str) -> None:
        screen.say("Open this address and agree there:")
        screen.err.print(line(address), soft_wrap=True)
        if not chosen.no_browser:
            # Aside: one that runs in the terminal returns only when it is left.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        return await log_in(
            name,
            filled(server.url or "", "url"),
            oauth,
            headers={key: filled(value, f"headers.{key}") for key, value in server.headers.items()},
            old_sse=server.type == "sse",
            client_id=None if oauth.client_id is None else filled(oauth.client_id, "oauth.clientId"),
            client_secret=None if oauth.client_secret is None else filled(oauth.client_secret, "oauth.clientSecret"),
            reach=reach_of(name, server, resolve_host, names="names an address for logins"),
            clock=SystemClock(),
            show=show,
            patience=chosen.wait,
        )
    except Fault as fault:
        raise UpstreamFailed(f"Server {name!r} {secrets.scrub_text(str(fault))}.", reason="login_failed") from None
