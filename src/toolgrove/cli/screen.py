"""Where a command answers: rich for people, JSON for machines; nothing foreign can steer the terminal."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

_HIDDEN = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
_PIPE_WIDTH = 10_000


class Screen:
    """One command's output."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    def answer(self, form: Any, *shown: RenderableType) -> None:
        """The result: the form for machines, the rest for people."""
        if self.as_json:
            self.out.out(visible_json(form), highlight=False)
            return
        if self.out.is_terminal:
            self.out.print(Group(*shown))
            return
        with self.out.capture() as captured:
            self.out.print(Group(*shown))
        lines = captured.get().splitlines()  # columns are padded to the last, which only a terminal needs
        self.out.out("\n".join(each.rstrip() for each in lines), highlight=False)

    def data(self, form: Any) -> None:
        """A result that is JSON for everybody."""
        self.out.out(visible_json(form), highlight=False)

    def say(self, text: str, style: str = "") -> None:
        """A remark on the side; it never mixes with the result."""
        self.err.print(line(text, style))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        # A file or a pipe has no edge: nothing is folded at column 80.
        console = Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=_PIPE_WIDTH)
    return console


def line(text: str, style: str = "") -> Text:
    """Text in which every character shows."""
    return Text(visible(text), style=style)


def table(*headings: str) -> Table:
    """Columns without a frame."""
    grid = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(headings))
    for heading in headings:
        grid.add_column(heading, overflow="fold")
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
