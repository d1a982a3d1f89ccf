"""Where a command answers: rich for people, JSON for machines; nothing foreign can steer the terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

_HIDDEN = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
_WIDTH, _HEIGHT = 10_000, 25  # rich asks for both, or a dumb terminal is 80 wide whatever is said


class Screen:
    """One command's output."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    def answer(self, form: Any, *shown: RenderableType, fold: bool = True) -> None:
        """The result: the form for machines, the rest for people; what they copy from it is not to be folded."""
        if self.as_json:
            self.data(form)
        elif fold and self.out.is_terminal:
            self.out.print(Group(*shown))
        else:
            # A file or a pipe has no edge, and a terminal copies a line whole that it has folded itself.
            wide = _console(stderr=False, width=_WIDTH, height=_HEIGHT)
            with wide.capture() as captured:
                wide.print(Group(*shown))
            lines = captured.get().splitlines()  # columns are padded to the last, which only a terminal needs
            self.out.out("\n".join(each.rstrip() for each in lines), highlight=False)

    def data(self, form: Any) -> None:
        """A result that is JSON for everybody."""
        self.out.out(visible_json(form), highlight=False)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show for what a person at a terminal waits meanwhile."""
        if not self.err.is_terminal or self.err.is_dumb_terminal:
            yield
            return
        with self.err.status(line(text)):
            yield

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


def visible(text: str) -> str:
    """The text with control and invisible characters written as escapes."""
    return "".join(map(_visible, text))


def visible_json(form: Any) -> str:
    """JSON that people can read, still JSON where characters are escaped."""
    return visible(json.dumps(form, indent=2, ensure_ascii=False))


def _visible(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return json.dumps(character)[1:-1]
