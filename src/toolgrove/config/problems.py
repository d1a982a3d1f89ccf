"""What is wrong with a file: every problem with its place, and never a value that might be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

Path = tuple[int | str, ...]
Places = Mapping[Path, tuple[int, int]]
_PLAIN = re.compile(r"[\w-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing to mend; `line` and `column` count from 1, 0 where they are not known."""

    path: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"


class ConfigError(ValueError):
    """A file that cannot be used; names every problem at once."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"{file}: {self.problems[0]}")
        else:
            listed = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{file} has {len(self.problems)} problems:{listed}")


def found(error: ValidationError, places: Places) -> list[Problem]:
    """The problems that validation found, in the order of the file."""
    problems = [_problem(line, places) for line in error.errors(include_url=False, include_input=False)]
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def _problem(line: Any, places: Places) -> Problem:
    loc = tuple(step for step in line["loc"] if step != "[key]")
    row, column = _place(loc, places)
    return Problem(path=dotted(loc), message=_message(line), line=row, column=column)


def _place(loc: Path, places: Places) -> tuple[int, int]:
    """Where the innermost part of a path stands that the file has."""
    for length in range(len(loc), 0, -1):
        if loc[:length] in places:
            return places[loc[:length]]
    return (0, 0)


def dotted(loc: Path) -> str:
    """A path as people write it: `agents.researcher.tools[0]`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if _PLAIN.fullmatch(step) else repr(step[:64]))
    return text


_SAID = {
    "missing": "is missing",
    "string_type": "must be text; put it in quotes",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "tuple_type": 'must be a list, such as ["search*"]',
    "list_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of keys to values",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
}


def _message(line: Any) -> str:
    said = _SAID.get(line["type"])
    if said is not None:
        return said.format(**line.get("ctx", {}))
    message: str = line["msg"]
    return message.removeprefix("Value error, ")
