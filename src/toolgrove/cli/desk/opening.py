"""Finds the gateway that serves a project, or opens the project.

A command that finds one needs neither the project's code nor its file, so nothing of them is imported before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from toolgrove.cli.desk.desk import Desk, Here
from toolgrove.cli.options import STATE, file
from toolgrove.cli.screen import Screen
from toolgrove.cli.text import user_name
from toolgrove.control.client import Gateway
from toolgrove.control.door import reached

if TYPE_CHECKING:
    from toolgrove.config import Config

Opener = Callable[["Config"], AbstractAsyncContextManager[Desk]]


@asynccontextmanager
async def desk(chosen: argparse.Namespace, screen: Screen, otherwise: Opener) -> AsyncIterator[Desk]:
    """The gateway's desk if one serves the project, which a remark says; `otherwise` opens one here."""
    path, config = file(chosen), None
    gateway = await anyio.to_thread.run_sync(near, path)
    if gateway is None:
        config = config_of(chosen)
        gateway = await anyio.to_thread.run_sync(elsewhere, config, path)
    if gateway is not None:
        screen.say(f"Using the gateway at {gateway.note.address}.", "dim")
        yield gateway
    elif config is not None:
        async with otherwise(config) as here:
            yield here


def config_of(chosen: argparse.Namespace) -> Config:
    """The configuration in the project file."""
    config: Config = import_module("toolgrove.cli.project").load(chosen)
    return config


def asked(chosen: argparse.Namespace, screen: Screen, what: str, *, make: bool = False, **given: Any) -> Any:
    """The answer to one question about what is kept."""

    async def ask() -> Any:
        async with desk(chosen, screen, kept(make=make)) as project:
            return await project.ask(what, **given)

    return anyio.run(ask)


def found(chosen: argparse.Namespace) -> Gateway | None:
    """The gateway that serves the project on this machine and answers."""
    path = file(chosen)
    return near(path) or elsewhere(config_of(chosen), path)


def near(path: Path) -> Gateway | None:
    """The gateway whose note lies where most projects have their state."""
    return _in(usual_place(path), path)


def elsewhere(config: Config, path: Path) -> Gateway | None:
    """The gateway whose note lies where the project file says; ValueError if that is another user's."""
    state = config.state
    if state is None:
        return None
    is_closed = state.is_dir() and not os.access(state, os.R_OK | os.X_OK)
    if sys.platform != "win32" and is_closed and (owner := state.stat().st_uid) != os.geteuid():
        whose = user_name(owner)
        raise ValueError(f"{state} belongs to {whose}, and so does a gateway that uses it; run this command as {whose}")
    return None if state.absolute() == usual_place(path) else _in(state, path)


def usual_place(path: Path) -> Path:
    """The state folder of a project file that names none."""
    return path.absolute().parent / STATE


def _in(folder: Path, path: Path) -> Gateway | None:
    note = reached(folder, path)
    return None if note is None else Gateway(folder, note)


def kept(*, make: bool = False) -> Opener:
    """Opens only what is kept; needs no lock, and starts nothing."""

    @asynccontextmanager
    async def opener(config: Config) -> AsyncIterator[Desk]:
        with import_module("toolgrove.cli.desk.rest").at_rest(config, make=make) as project:
            yield Here(project)

    return opener


def running(
    screen: Screen, *, wait: float, agent: str | None = None, name_missing: bool = True, looking: bool = False
) -> Opener:
    """Opens the project with its servers; who is only `looking` leaves the store to others."""

    @asynccontextmanager
    async def opener(config: Config) -> AsyncIterator[Desk]:
        opened = import_module("toolgrove.cli.project").opened
        async with opened(config, screen, wait=wait, agent=agent, name_missing=name_missing, looking=looking) as grove:
            yield Here(grove)

    return opener
