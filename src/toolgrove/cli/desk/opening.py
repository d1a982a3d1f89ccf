"""Finds the gateway that serves a project, or opens the project."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from toolgrove.cli.desk.desk import Desk, Here
from toolgrove.cli.desk.rest import at_rest
from toolgrove.cli.options import file
from toolgrove.cli.project import load, opened
from toolgrove.cli.screen import Screen
from toolgrove.config import Config
from toolgrove.control.client import Gateway
from toolgrove.control.door import reached

Opener = Callable[[Config], AbstractAsyncContextManager[Desk]]


@asynccontextmanager
async def desk(chosen: argparse.Namespace, screen: Screen, otherwise: Opener) -> AsyncIterator[Desk]:
    """The gateway's desk if one serves the project, which a remark says; `otherwise` opens one here."""
    config = load(chosen)
    gateway = await anyio.to_thread.run_sync(find, config, file(chosen))
    if gateway is not None:
        screen.say(f"Using the gateway at {gateway.note.address}.", "dim")
        yield gateway
        return
    async with otherwise(config) as here:
        yield here


def asked(chosen: argparse.Namespace, screen: Screen, what: str, *, make: bool = False, **given: Any) -> Any:
    """The answer to one question about what is kept."""

    async def ask() -> Any:
        async with desk(chosen, screen, kept(make=make)) as project:
            return await project.ask(what, **given)

    return anyio.run(ask)


def find(config: Config, path: Path) -> Gateway | None:
    """The gateway that serves a project file on this machine and answers."""
    note = None if config.state is None else reached(config.state, path)
    return None if note is None or config.state is None else Gateway(config.state, note)


def kept(*, make: bool = False) -> Opener:
    """Opens only what is kept; needs no lock, and starts nothing."""

    @asynccontextmanager
    async def opener(config: Config) -> AsyncIterator[Desk]:
        here: AbstractContextManager[object] = at_rest(config, make=make)
        with here as project:
            yield Here(project)

    return opener


def running(
    screen: Screen, *, wait: float, agent: str | None = None, name_missing: bool = True, looking: bool = False
) -> Opener:
    """Opens the project with its servers; who is only `looking` leaves the store to others."""

    @asynccontextmanager
    async def opener(config: Config) -> AsyncIterator[Desk]:
        async with opened(config, screen, wait=wait, agent=agent, name_missing=name_missing, looking=looking) as grove:
            yield Here(grove)

    return opener
