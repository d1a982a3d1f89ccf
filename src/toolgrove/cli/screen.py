"""Where a command answers: rich for people, JSON for machines; nothing foreign can steer the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from toolgrove.notation.unseen_text import visible, visible_json

_WIDTH, _HEIGHT = 10_000, 25  # rich asks for both, or a dumb terminal is 80 wide in any case


class Screen:
    """What a command prints: the result on stdout, remarks on stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    def answer(self, value: Any, *shown: RenderableType, fold: bool = True) -> None:
        """Print a result: `value` for machines, `shown` for people; without `fold`, lines stay whole for copying."""
        if self.as_json:
            self.data(value)
        elif fold and self.out.is_terminal:
            self.out.print(Group(*shown))
        else:
            # A file or a pipe has no edge, and a terminal copies a line as one if it folded it itself.
            wide = _console(stderr=False, width=_WIDTH, height=_HEIGHT)
            with wide.capture() as captured:
                wide.print(Group(*shown))
            lines = captured.get().splitlines()  # columns are padded to the last, which only a terminal needs
            self.out.out("\n".join(each.rstrip() for each in lines), highlight=False)

    def event(self, value: Any, *shown: RenderableType) -> None:
        """Print one of several that come one after another: a line of JSON for machines."""
        if self.as_json:
            self.out.out(json.dumps(value), highlight=False)
        else:
            self.out.print(Group(*shown))
        self.out.file.flush()

    def data(self, value: Any) -> None:
        """Print a result that is JSON for people and machines alike."""
        self.out.out(visible_json(value), highlight=False)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show a person at a terminal what they are waiting for, and keep that up to date."""
        if not self.err.is_terminal:
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
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width, height=height)
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def line(text: str, style: str = "") -> Text:
    """Text in which every character shows."""
    return Text(visible(text), style=style)


def table(*headings: str, whole: str = "") -> Table:
    """Columns without a frame; the one that people copy from is never folded."""
    grid = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(headings))
    for heading in headings:
        grid.add_column(heading, overflow="fold", no_wrap=heading == whole)
    return grid
