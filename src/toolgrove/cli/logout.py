"""`toolgrove logout`: forget the login to an MCP server."""

from __future__ import annotations

import argparse
from typing import Any

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.errors import InvalidArgument
from toolgrove.project_state import ProjectState


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "logout",
        parents=[shared],
        help="forget the login to an MCP server",
        description="Forget the tokens of an MCP server; a gateway that runs uses them no more. The authorization "
        "server is not told: end the access there too if somebody else may have the tokens.",
    )
    parser.add_argument("server", metavar="SERVER", help="the server's name, also one that the file has no more")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Forget it."""
    with ProjectState.of(load(chosen)) as state:
        if not state.logins.forget(chosen.server, by=signature()):
            raise InvalidArgument(f"There is no login to {chosen.server!r}.")
    screen.answer({"server": chosen.server, "loggedOut": True}, line(f"Logged out of {chosen.server}."))
    return 0
