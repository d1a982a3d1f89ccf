"""`toolgrove logout`: forget the login to an MCP server."""

from __future__ import annotations

import argparse
from typing import Any

import anyio

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.config import Config
from toolgrove.errors import GroveError, InvalidArgument
from toolgrove.pool.host import resolve_host
from toolgrove.pool.mcp.oauth.target import reach_of_login
from toolgrove.pool.mcp.oauth.web import Web
from toolgrove.pool.secrets import Secrets
from toolgrove.project_state import ProjectState
from toolgrove.store.state import Login
from toolgrove.types import SystemClock


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "logout",
        parents=[shared],
        description="Forget the tokens of an MCP server; a gateway that runs uses them no more. Its authorization "
        "server is asked to end the access too; if it cannot be, the command says so.",
    )
    parser.add_argument("server", metavar="SERVER", help="the server's name, also one that the file has no more")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Forget it here, whatever happens there."""
    config = load(chosen)
    with ProjectState.of(config) as state:
        login = state.logins.forget(chosen.server, by=signature())
    if login is None:
        raise InvalidArgument(f"There is no login to {chosen.server!r}.")
    problem = anyio.run(_revoked, config, login)
    facts = {"server": chosen.server, "loggedOut": True, "revoked": not problem}
    if not problem:
        screen.answer(facts, line(f"Logged out of {chosen.server}; its authorization server ended the access."))
        return 0
    why = f"{chosen.server} {problem}."
    told = (
        f"Logged out of {chosen.server}: the tokens are gone from here. They may still be good elsewhere: {why} "
        "If somebody else may have them, end the access there."
    )
    screen.answer({**facts, "problem": why}, line(told))
    return 0


async def _revoked(config: Config, login: Login) -> str:
    from toolgrove.pool.mcp.oauth.ending import revoke  # noqa: PLC0415  (the client of `mcp` takes long to import)

    server, secrets = config.mcp_servers.get(login.server), Secrets(config.secrets, folder=config.folder)
    secret = None if server is None or server.oauth is None else server.oauth.client_secret
    try:
        if secret is not None:
            field = f"mcpServers.{login.server}.oauth.clientSecret"
            secret = secrets.fill(secret, field=field, user=f"{login.server}_*")
    except GroveError:
        secret = None  # the authorization server says what it misses
    web = Web(reach_of_login(login, server, resolve_host), SystemClock())
    return secrets.scrub_text(await revoke(web, login, secret=secret))
