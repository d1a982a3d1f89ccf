"""The flags that every command has."""

from __future__ import annotations

import argparse
from pathlib import Path

from apcore_files.app_name import is_app
from toolgrove.cli.numbers import whole_number

DEFAULT = Path("toolgrove.yaml")
STATE = ".toolgrove"
"""The state folder beside a project file that names none; known here so that quick commands need not read the file."""
ASSISTANT = "assistant"
"""The agent of a project that is one Python file."""
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


def add_agent(
    parser: argparse.ArgumentParser,
    meaning: str = "the agent, or app.py",
    *,
    default: str | None = None,
    takes_app: bool = True,
) -> None:
    """The agent, at the same place everywhere; the flag of earlier versions is still understood."""
    parser.add_argument("agent", nargs="?", metavar="AGENT", help=f"{meaning} ({default})" if default else meaning)
    parser.add_argument("--agent", dest="agent_flag", help=argparse.SUPPRESS)
    parser.set_defaults(agent_default=default, takes_app=takes_app)


def require_agent(parser: argparse.ArgumentParser) -> None:
    """The agent, which has to be named."""
    parser.add_argument("agent", metavar="AGENT", help="the agent, or app.py")
    parser.set_defaults(takes_app=True)


def settle_agent(chosen: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Take the agent from wherever it was named; ends the process where none is.

    A Python file in its place is the project, which has one agent.
    """
    if "takes_app" not in chosen:
        return
    if chosen.takes_app and chosen.agent is not None and chosen.config is None and is_app(chosen.agent):
        chosen.config, chosen.agent = Path(chosen.agent), ASSISTANT
    named = [name for name in (chosen.agent, getattr(chosen, "agent_flag", None)) if name is not None]
    if len(set(named)) > 1:
        parser.error(f"two agents are named, {named[0]} and {named[1]}; leave one of them out")
    only = ASSISTANT if chosen.takes_app and chosen.config is not None and is_app(str(chosen.config)) else None
    chosen.agent = named[0] if named else only or chosen.agent_default
    if chosen.agent is None:
        parser.error("name an agent; 'toolgrove tokens' lists them")


def add_patience(parser: argparse.ArgumentParser) -> None:
    """The flag of the commands that wait."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=LONGEST,
        metavar="SECONDS",
        help=f"how long to wait for a server that is still starting ({LONGEST})",
    )
