"""Picks the command, and turns every failure into one paragraph and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

from toolgrove.cli.project import add_options, options
from toolgrove.cli.screen import Screen
from toolgrove.errors import GroveError, InvalidArgument
from toolgrove.logs import JsonLine, OneLine
from toolgrove.store.state import StateTooNew

OK, FAILED = 0, 1
_COMMANDS = (
    *("demo", "init", "doctor", "serve", "stdio", "install", "tokens", "explain", "tools", "call", "run"),
    *("login", "logout", "pins", "approvals", "audit", "backup", "restore", "schema", "tree", "repl"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 if it went well, 1 if not, 2 if it was called wrongly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its escape
    words = sys.argv[1:] if arguments is None else list(arguments)
    chosen = _parser(_named(words)).parse_args(words)
    screen = Screen(as_json=chosen.json)
    try:
        with _logging(verbose=chosen.verbose):
            code: int = chosen.run(chosen, screen)
        screen.out.file.flush()
    except BrokenPipeError:
        # The reader of our output has closed the pipe; Python must not complain while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as problem:
        return _failed(problem, screen)
    return code


def _named(words: list[str]) -> Sequence[str]:
    """The command that is asked for, alone; all of them where that is not clear."""
    if words[:1] == ["--version"]:
        return ()
    values = {at + 1 for at, word in enumerate(words) if word == "--config"}
    named = next((word for at, word in enumerate(words) if at not in values and not word.startswith("-")), None)
    return (named,) if named in _COMMANDS else _COMMANDS


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolgrove", description="One governed tool surface for AI agents.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"toolgrove {version('toolgrove')}")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log on stderr")
    add_options(parser, default=None)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = options()
    for name in names:  # imported here, since some commands import much that the others do not need
        import_module(f"toolgrove.cli.{name}").add(commands, shared)
    return parser


@contextmanager
def _logging(*, verbose: bool) -> Iterator[None]:
    """Without -v the log is silent: what matters in it is part of the answers. Machines get it as JSON."""
    ours, others = logging.getLogger("toolgrove"), logging.getLogger()
    before = [(log, log.handlers[:], log.level, log.propagate) for log in (ours, others)]
    handler: logging.Handler = logging.StreamHandler() if verbose else logging.NullHandler()
    handler.setFormatter(OneLine("%(levelname)s %(name)s: %(message)s") if sys.stderr.isatty() else JsonLine())
    ours.handlers[:], ours.propagate, others.handlers[:] = [handler], False, [handler]
    ours.setLevel(logging.INFO if verbose else logging.CRITICAL)
    others.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for log, handlers, level, propagate in before:
            log.handlers[:], log.propagate = handlers, propagate
            log.setLevel(level)


def _failed(problem: Exception, screen: Screen) -> int:
    while isinstance(problem, ExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    if not isinstance(problem, GroveError | OSError | ValueError | StateTooNew):
        if os.environ.get("TOOLGROVE_DEBUG"):
            raise problem
        problem = GroveError(f"a fault of ours ({type(problem).__name__}); TOOLGROVE_DEBUG=1 shows where.")
    elif not isinstance(problem, GroveError):
        problem = InvalidArgument(_sentence(problem))
    if screen.as_json:
        screen.data(problem.to_json())
    else:
        screen.say(f"toolgrove: {problem}", "red")
    return FAILED


def _sentence(problem: Exception) -> str:
    """What went wrong; of a file, with its name and without the system's number."""
    if isinstance(problem, OSError) and problem.filename is not None and problem.strerror:
        return f"{os.fsdecode(problem.filename)}: {problem.strerror}."
    return str(problem)
