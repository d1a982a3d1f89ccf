"""The flags that every command has."""

from __future__ import annotations

import argparse
from pathlib import Path

from toolgrove.cli.numbers import whole_number

DEFAULT = Path("toolgrove.yaml")
STATE = ".toolgrove"
"""The state folder beside a project file that names none; known here so that quick commands need not read the file."""
LONGEST = 60
"""Seconds; by then a server that does not answer is given up by itself."""
_seconds = whole_number(f"a number of seconds from 1 to {LONGEST}", low=1, high=LONGEST)


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


def add_agent(parser: argparse.ArgumentParser, meaning: str = "the agent", *, default: str | None = None) -> None:
    """The agent, at the same place everywhere; the flag of earlier versions is still understood."""
    parser.add_argument("agent", nargs="?", metavar="AGENT", help=f"{meaning} ({default})" if default else meaning)
    parser.add_argument("--agent", dest="agent_flag", help=argparse.SUPPRESS)
    parser.set_defaults(agent_default=default)


def settle_agent(chosen: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Take the agent from wherever it was named; ends the process where none is."""
    if "agent_flag" not in chosen:
        return
    named = [name for name in (chosen.agent, chosen.agent_flag) if name is not None]
    if len(set(named)) > 1:
        parser.error(f"two agents are named, {named[0]} and {named[1]}; leave one of them out")
    chosen.agent = named[0] if named else chosen.agent_default
    if chosen.agent is None:
        parser.error("name an agent; 'toolgrove explain AGENT' and 'toolgrove tokens' show who there is")


def add_patience(parser: argparse.ArgumentParser) -> None:
    """The flag of the commands that wait."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=LONGEST,
        metavar="SECONDS",
        help=f"how long to wait for a server that is still starting ({LONGEST})",
    )
