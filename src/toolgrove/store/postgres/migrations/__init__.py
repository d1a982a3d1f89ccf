"""The steps from an empty schema to the newest version, one file of SQL each, numbered without a gap.

A step runs whole or not at all, with the project's schema as the search path. A step that was ever released is never
changed; what comes later is a new file.

While a step runs, and after it, replicas of the version before go on writing, unless the step forbids it: `head.oldest`
is the oldest version that may write, and each transaction looks at it. A step need not raise it where it only adds what
older processes leave out and never read: a table, a column with a default, an index. It has to raise it where it adds a
field to the head or to a body, changes what a row means, or takes something away. 0007 shows how.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One file."""

    number: int
    name: str
    sql: str


def version() -> int:
    """The version that all steps lead to."""
    return len(steps())


@cache
def steps() -> tuple[Step, ...]:
    """Every step, in order."""
    found = sorted((file for file in files(__name__).iterdir() if file.name.endswith(".sql")), key=lambda one: one.name)
    numbers = [int(file.name.partition("_")[0]) for file in found]
    if numbers != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations are not numbered 1 to {len(found)}: {numbers}")
    return tuple(
        Step(number=number, name=file.name.removesuffix(".sql"), sql=file.read_text("utf-8"))
        for number, file in zip(numbers, found, strict=True)
    )
