"""`toolgrove demo`: a sample project in a folder, served at once, so that the first minute shows everything."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from toolgrove.cli.browser import show_page
from toolgrove.cli.last_exit import serve_and_exit
from toolgrove.cli.numbers import port
from toolgrove.cli.screen import Screen
from toolgrove.cli.serve import Service, announce, issue_missing, listen
from toolgrove.config import ConfigFile
from toolgrove.grove import Grove
from toolgrove.sample.folder import shop_socket, write
from toolgrove.sample.order import ask, follow
from toolgrove.sample.past import SampleClock, is_new, live_through
from toolgrove.sample.season import lay_out
from toolgrove.sample.shop import shop_open
from toolgrove.sample.watering import go_round
from toolgrove.store.state import OPERATOR

FOLDER = Path("toolgrove-demo")
_STARTING = "Starting the demo"


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "demo",
        parents=[shared],
        description="Write a sample project into a folder, which is kept, and serve it on this machine: a kitchen "
        "garden, four agents with different rights, a seed shop, and an order that waits for your approval.",
    )
    parser.add_argument("--port", type=port, default=8000, help="port (8000)")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help=f"the project's folder ({FOLDER})")
    parser.add_argument("--no-browser", action="store_true", help="only print the console's address")
    parser.add_argument("--still", action="store_true", help="no agent works by itself")
    parser.set_defaults(run=_demo, verbose=True)


def _demo(chosen: argparse.Namespace, screen: Screen) -> int:
    if chosen.folder.exists() and not chosen.folder.is_dir():
        raise ValueError(f"{chosen.folder} is a file; name a folder for the demo with --folder")
    with listen("127.0.0.1", chosen.port) as listening:
        if screen.as_json:
            announce(screen, _STARTING)
        elif not screen.is_watched:
            screen.say(f"{_STARTING} in {chosen.folder} …")
        file = write(chosen.folder)
        clock = SampleClock()
        with shop_socket(file, near=listening.getsockname()[1] + 1) as shop:

            @asynccontextmanager
            async def beside(grove: Grove) -> AsyncIterator[None]:
                async with shop_open(shop), anyio.create_task_group() as tasks:
                    await _prepare(grove, clock, tasks.start_soon, still=chosen.still)
                    yield
                    tasks.cancel_scope.cancel()

            def greeted(console: str) -> None:
                if not screen.as_json:
                    screen.say(_HINTS.format(file=file))
                if not chosen.no_browser:
                    show_page(console)

            service = Service(
                file=ConfigFile(file),
                listening=listening,
                screen=screen,
                beside=beside,
                tokens=_tokens,
                greeted=greeted,
                clock=clock,
            )
            return serve_and_exit(service.run)


_HINTS = """
Open the console: an order waits for your approval, the sprinkler waters the tree's beds, and two snapshots differ.
The project is {file}: change it, and every agent sees the change at once.
Ctrl+C ends the demo; the folder stays."""


async def _prepare(grove: Grove, clock: SampleClock, start: Any, *, still: bool) -> None:
    if await is_new(grove):
        clock.go_back()
    if await lay_out(grove):
        await live_through(grove, clock)
    waiting = await ask(grove)
    if waiting is not None:
        start(follow, grove, waiting)
    if not still:
        start(go_round, grove)


def _tokens(grove: Grove) -> Mapping[str, str]:
    """The operator's token is new each time, so that the address which is printed always works."""
    return {OPERATOR: grove.tokens.issue(OPERATOR, by="toolgrove demo", replace=True), **issue_missing(grove)}
