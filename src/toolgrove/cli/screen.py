"""Where a command answers: rich for people, JSON for machines; nothing foreign can steer the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgrove.notation.unseen_text import visible, visible_json

if TYPE_CHECKING:  # machines do without it, and need not wait for its import
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_WIDTH, _HEIGHT = 10_000, 25  # rich asks for both, or a dumb terminal is 80 wide in any case
_CLAIMS = frozenset(("FORCE_COLOR", "TTY_COMPATIBLE"))
"""With one of these in the environment, rich may take anything for a terminal."""


class Screen:
    """What a command prints: the result on stdout, remarks on stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def out(self) -> Console:
        """Where results go."""
        return _console(stderr=False)

    @cached_property
    def err(self) -> Console:
        """Where remarks go."""
        return _console(stderr=True)

    @property
    def is_watched(self) -> bool:
        """Whether a person reads the remarks as they come."""
        return (sys.stderr.isatty() or not _CLAIMS.isdisjoint(os.environ)) and self.err.is_terminal

    def flush(self) -> None:
        """Have the results so far reach whoever reads them."""
        print(end="", flush=True)  # noqa: T201  (unlike flush, it does without a stdout that is closed)

    def answer(self, value: Any, *shown: RenderableType, fold: bool = True) -> None:
        """Print a result: `value` for machines, `shown` for people; without `fold`, lines stay whole for copying."""
        if self.as_json:
            self.data(value)
        elif fold and self.out.is_terminal:
            self.out.print(_group(*shown))
        else:
            # A file or a pipe has no edge, and a terminal copies a line as one if it folded it itself.
            wide = _console(stderr=False, width=_WIDTH, height=_HEIGHT)
            with wide.capture() as captured:
                wide.print(_group(*shown))
            lines = captured.get().splitlines()  # columns are padded to the last, which only a terminal needs
            self.out.out("\n".join(each.rstrip() for each in lines), highlight=False)

    def event(self, value: Any, *shown: RenderableType) -> None:
        """Print one of several that come one after another: a line of JSON for machines."""
        if self.as_json:
            self._write(json.dumps(value))
        else:
            self.out.print(_group(*shown))
            self.flush()

    def data(self, value: Any) -> None:
        """Print a result that is JSON for people and machines alike."""
        self._write(visible_json(value))

    def _write(self, text: str) -> None:
        """Print a text as it is, and end as rich does where nobody reads it."""
        try:
            print(text, flush=True)  # noqa: T201  (unlike write, it does without a stdout that is closed)
        except BrokenPipeError:
            self.out.on_broken_pipe()

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show a person at a terminal what they are waiting for, and keep that up to date."""
        if not self.is_watched:
            yield lambda later: None
        elif self.err.is_dumb_terminal:
            yield self.say
        else:
            with self.err.status(line(text)) as status:
                yield lambda later: status.update(line(later))

    def say(self, text: str, style: str = "") -> None:
        """A remark on the side; it never mixes with the result."""
        self.err.print(line(text, style))


def _console(*, stderr: bool, width: int | None = None, height: int | None = None) -> Console:
    rich = import_module("rich.console")
    console: Console = rich.Console(
        stderr=stderr, markup=False, highlight=False, emoji=False, width=width, height=height
    )
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def _group(*shown: RenderableType) -> RenderableType:
    group: RenderableType = import_module("rich.console").Group(*shown)
    return group


def line(text: str, style: str = "") -> Text:
    """Text in which every character shows."""
    written: Text = import_module("rich.text").Text(visible(text), style=style)
    return written


def table(*headings: str, whole: str = "") -> Table:
    """Columns without a frame; the one that people copy from is never folded."""
    rich = import_module("rich.table")
    grid: Table = rich.Table(box=None, pad_edge=False, header_style="bold", show_header=bool(headings))
    for heading in headings:
        grid.add_column(heading, overflow="fold", no_wrap=heading == whole)
    return grid
