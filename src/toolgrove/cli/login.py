"""`toolgrove login`: log in to an MCP server that asks for OAuth, in a browser."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from typing import Any

import anyio

from toolgrove.cli.numbers import whole_number
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.config import Config
from toolgrove.errors import UpstreamFailed
from toolgrove.notation.times import to_seconds
from toolgrove.pool.host import resolve_host
from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.oauth.target import oauth_of, target_of
from toolgrove.pool.mcp.scopes import union
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
        description="Log in to an MCP server that has an 'oauth' block in the project file. A browser opens, you agree "
        "there, and it comes back to this command. The tokens are kept in the project's state; a gateway that runs "
        "takes them up by itself.",
    )
    parser.add_argument("server", metavar="SERVER", help="the server's name in the project file")
    parser.add_argument(
        "--scope",
        metavar="SCOPES",
        action="append",
        default=[],
        help="ask for these scopes as well, as a server that needs more rights names them",
    )
    parser.add_argument("--no-browser", action="store_true", help="only show the address to open")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=_seconds, default=_PATIENCE, help=f"how long to wait ({_PATIENCE})"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Log in, and keep what came of it."""
    config = load(chosen)
    oauth_of(config, chosen.server)
    with ProjectState.of(config, make=True) as state:
        login = anyio.run(_login, config, state.logins.of(chosen.server), chosen, screen)
        state.logins.begin(login, by=signature())
    until = None if login.expires_at is None else to_seconds(login.expires_at)
    facts = {"server": chosen.server, "issuer": login.issuer, "scope": login.scope, "expiresAt": until}
    facts["renewable"] = login.refresh_token is not None
    lasts = "It is renewed by itself." if login.refresh_token is not None else "It cannot be renewed by itself."
    screen.answer(facts, line(f"Logged in to {chosen.server}. {lasts}"))
    return 0


async def _login(config: Config, before: Login | None, chosen: argparse.Namespace, screen: Screen) -> Login:
    from toolgrove.pool.mcp.oauth.browser import log_in  # noqa: PLC0415  (the client of `mcp` takes long to import)

    secrets = Secrets(config.secrets, folder=config.folder)

    def show(address: str) -> None:
        screen.say("Open this address and agree there:")
        screen.err.print(line(address), soft_wrap=True)
        if not chosen.no_browser:
            # Aside: one that runs in the terminal returns only when it is left.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        return await log_in(
            target_of(config, chosen.server, secrets, resolve_host),
            scope=union(*chosen.scope),
            before=before,
            clock=SystemClock(),
            show=show,
            patience=chosen.wait,
        )
    except Fault as fault:
        said = f"Server {chosen.server!r} {secrets.scrub_text(str(fault))}."
        raise UpstreamFailed(said, reason="login_failed") from None
