"""`toolgrove open`: the console of the gateway that runs, with a fresh sign-in."""

from __future__ import annotations

import argparse
from typing import Any

from toolgrove.cli.browser import show_page
from toolgrove.cli.desk.opening import asked, found
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "open",
        parents=[shared],
        description="Open the console of the gateway that serves this project, signed in for twelve hours. Other "
        "sign-ins and your own token stay good.",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Sign in, and show the console; the address holds the token, so it is printed where nobody else reads."""
    gateway = found(chosen)
    if gateway is None:
        raise ValueError("no gateway serves this project on this machine; start one with 'toolgrove serve'")
    token = asked(chosen, screen, "sign_in", by=signature())["token"]
    console = f"{gateway.note.address}/console#token={token}"
    screen.answer({"console": console}, line(console), fold=False)
    if not chosen.no_browser:
        show_page(console)
    return 0
