"""The flags that every command has."""

from __future__ import annotations

import argparse
from pathlib import Path

DEFAULT = Path("toolgrove.yaml")


def add_options(parser: argparse.ArgumentParser, *, default: object) -> None:
    """Add them to a parser; they stand before or after the command's name."""
    config = f"the project file ({DEFAULT})"
    parser.add_argument("--config", type=Path, default=default, metavar="PATH", help=config)
    parser.add_argument("--json", action="store_true", default=default or False, help="answer in JSON, for machines")


def options() -> argparse.ArgumentParser:
    """The same as a parent for commands: where they are not given, those before the name hold."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser, default=argparse.SUPPRESS)
    return parser


def file(chosen: argparse.Namespace) -> Path:
    """The project file that is named, or the default one."""
    path: Path = chosen.config or DEFAULT
    return path
