"""The project that a command works on."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from toolgrove.cli.screen import Screen
from toolgrove.config import Config
from toolgrove.grove import Grove

DEFAULT = Path("toolgrove.yaml")


def add_options(parser: argparse.ArgumentParser, *, default: object) -> None:
    """The flags that every command on a project has, before or after the command's name."""
    config = f"the project file ({DEFAULT})"
    parser.add_argument("--config", type=Path, default=default, metavar="PATH", help=config)
    parser.add_argument("--json", action="store_true", default=default or False, help="answer in JSON, for machines")


def options() -> argparse.ArgumentParser:
    """The same as a parent for commands: where they are not given, those before the name hold."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser, default=argparse.SUPPRESS)
    return parser


def depth(text: str) -> int:
    """The value of --depth."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a depth: 0 is the agent itself, 1 a sub-agent, and so on")
    return int(text)


def file(chosen: argparse.Namespace) -> Path:
    """The project file."""
    path: Path = chosen.config or DEFAULT
    return path


def load(chosen: argparse.Namespace) -> Config:
    """What it says."""
    return Config.load(file(chosen))


@asynccontextmanager
async def opened(config: Config, screen: Screen) -> AsyncIterator[Grove]:
    """The project with its servers running; whoever waits sees for what."""
    count = len(config.servers) + len(config.http_tools)
    async with Grove(config) as grove:
        if count and screen.err.is_terminal:
            with screen.err.status(f"Asking {count} source{'s' * (count != 1)} for tools …"):
                await grove.pool.snapshot()
        else:
            await grove.pool.snapshot()
        yield grove
