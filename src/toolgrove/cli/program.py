"""Picks the command. What a command needs is imported once it is picked: help comes at once."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from io import TextIOWrapper
from types import MappingProxyType

from toolgrove.cli.examples import examples_of
from toolgrove.cli.options import add_options, options, settle_agent
from toolgrove.cli.reader import Reader

GROUPS = MappingProxyType(
    {
        "Start": {
            "demo": "see it work: a sample project with its console",
            "init": "write a project file to start from",
            "doctor": "check the project, and say what to do about each problem",
        },
        "Serve": {
            "serve": "serve every agent over MCP, with a console for you",
            "open": "open the console of the gateway that runs, signed in",
            "stdio": "serve one agent to a desktop client",
            "install": "connect an MCP client to an agent",
        },
        "Look and try": {
            "tools": "list an agent's tools",
            "explain": "explain why an agent does or doesn't have a tool",
            "call": "call a tool as an agent",
            "repl": "call tools by hand, with completion",
            "run": "have an agent's model work on a task",
            "tree": "print the project's tree, or one in a file",
        },
        "Decide": {
            "approvals": "see, approve or reject calls that need approval",
            "pins": "review the definitions of foreign tools",
            "tokens": "see who has a token, make new ones, revoke them",
            "login": "log in to an MCP server that asks for OAuth",
            "logout": "forget the login to an MCP server",
        },
        "Keep": {
            "audit": "see what agents did; verify and export the log",
            "backup": "write store, state and audit logs to one file",
            "restore": "put a backup back, and keep what was there beside it",
            "migrate": "move the project to another store, or prepare a database",
        },
        "More": {
            "schema": "print the JSON Schema of the project file",
            "completion": "print the completion script for your shell",
        },
    }
)
COMMANDS = MappingProxyType({name: summary for group in GROUPS.values() for name, summary in group.items()})
LISTING = ("approvals", "audit", "pins", "tokens")
"""Commands with verbs of which `list` goes without saying."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 if it went well, 1 if not, 2 if it was called wrongly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its escape
    try:
        chosen = parsed(sys.argv[1:] if arguments is None else list(arguments))
        quick: Callable[[argparse.Namespace], int | None] | None = getattr(chosen, "quick", None)
        done = None if quick is None else quick(chosen)  # before anything heavy is imported
        code: int = import_module("toolgrove.cli.outcome").run(chosen) if done is None else done
    finally:
        gc.unfreeze()  # a process that goes on may have left something to collect
    return code


def parsed(words: list[str]) -> argparse.Namespace:
    """What was typed, with the function that runs it; ends the process for help and for words that make no command."""
    reader = parser(_named(words))
    if not words:
        reader.print_help()
        reader.exit(0)
    chosen = reader.parse_args(_with_verb(words))
    settle_agent(chosen, reader)
    return chosen


def parser(names: Collection[str]) -> Reader:
    """Reads words; of the commands it knows these whole, or, where none is named, each by its summary."""
    program = Reader(
        prog="toolgrove",
        usage="toolgrove [OPTIONS] COMMAND …",
        description="Give every AI agent exactly the tools it should have.",
        epilog=_overview(),
    )
    program.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    program.add_argument("-v", "--verbose", action="store_true", help="show the log on stderr")
    add_options(program, default=None)
    commands = program.add_subparsers(required=True, prog="toolgrove", metavar="COMMAND", help=argparse.SUPPRESS)
    shared = options()
    gc.disable()  # what is imported stays, and looking for what may go, even once, takes long
    for name in names:
        import_module(f"toolgrove.cli.{name}").add(commands, shared)
        commands.choices[name].epilog = examples_of(name)
    gc.freeze()
    gc.enable()
    if not names:
        for name in COMMANDS:
            commands.add_parser(name)
    return program


class _Version(argparse.Action):
    """Prints the version; looking it up takes longer than all else that a quick command does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"toolgrove {import_module('importlib.metadata').version('toolgrove')}\n")
        parser.exit()


def _overview() -> str:
    """Every command under what it is for, and the first things to type."""
    width = max(map(len, COMMANDS)) + 2
    groups = [
        "\n".join([f"{title}:", *(f"  {name:<{width}}{summary}" for name, summary in group.items())])
        for title, group in GROUPS.items()
    ]
    return "\n" + "\n\n".join([*groups, (examples_of("") or "").strip()]) + "\n"


def _with_verb(words: list[str]) -> list[str]:
    """The words with `list` where a command that has verbs is given options alone."""
    at = next((at for at, word in enumerate(words) if word in LISTING), None)
    if at is None or _named(words) != (words[at],):
        return words
    after = at + 1
    while after < len(words) and words[after] in ("--json", "--config"):
        after += 1 + (words[after] == "--config")
    if after < len(words) and (words[after] in ("-h", "--help") or not words[after].startswith("-")):
        return words
    return [*words[: at + 1], "list", *words[at + 1 :]]


def _named(words: list[str]) -> Collection[str]:
    """The command that is asked for; none where that is not clear."""
    values = {at + 1 for at, word in enumerate(words) if word == "--config"}
    for at, word in enumerate(words):
        if word in ("-h", "--help"):
            break
        if at not in values and not word.startswith("-"):
            return (word,) if word in COMMANDS else ()
    return ()
