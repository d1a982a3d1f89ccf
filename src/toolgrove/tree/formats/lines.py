"""A node as a line of a text says it, read without trusting it."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from toolgrove.errors import InvalidArgument

MAX_DEPTH = 5_000


class Line(NamedTuple):
    """A node in a text: how deep it stands, and its name; or the note that the text was cut."""

    depth: int
    name: str | None
    number: int
    is_cut: bool = False


def refuse(form: str, number: int, problem: str) -> NoReturn:
    """Say which line of a text cannot be read, and why."""
    raise InvalidArgument(f"Line {number} of the {form} text {problem}.", reason="document", line=number)
