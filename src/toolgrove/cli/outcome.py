"""Runs a command, and turns every failure into one paragraph and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from toolgrove.cli.screen import Screen
from toolgrove.errors import GroveError, InvalidArgument
from toolgrove.logs import HumanLine, JsonLine

FAILED = 1


def run(chosen: argparse.Namespace) -> int:
    """Run the command that was chosen: 0 if it went well, 1 if not."""
    screen = Screen(as_json=chosen.json)
    try:
        with _logging(verbose=chosen.verbose):
            code: int = chosen.run(chosen, screen)
        screen.flush()
    except BrokenPipeError:
        # The reader of our output has closed the pipe; Python must not complain while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as problem:
        return _failed(problem, screen)
    return code


@contextmanager
def _logging(*, verbose: bool) -> Iterator[None]:
    """Without -v the log is silent: what matters in it is part of the answers. Machines get it as JSON."""
    ours, others = logging.getLogger("toolgrove"), logging.getLogger()
    before = [(log, log.handlers[:], log.level, log.propagate) for log in (ours, others)]
    handler: logging.Handler = logging.StreamHandler() if verbose else logging.NullHandler()
    handler.setFormatter(HumanLine() if sys.stderr.isatty() else JsonLine())
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
    if not isinstance(problem, GroveError | OSError | ValueError) and not _is_from_the_future(problem):
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


def _is_from_the_future(problem: Exception) -> bool:
    """Whether a newer Toolgrove wrote what was opened."""
    return isinstance(problem, import_module("toolgrove.store.state").StateTooNew)


def _sentence(problem: Exception) -> str:
    """What went wrong; of a file, with its name and without the system's number."""
    if isinstance(problem, OSError) and problem.filename is not None and problem.strerror:
        return f"{os.fsdecode(problem.filename)}: {problem.strerror}."
    return str(problem)
