"""The steps from an empty schema to the newest version, one file of SQL each, numbered without a gap.

A step runs whole or not at all, with the project's schema as the search path. A step that was ever released is never
changed; what comes later is a new file.
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
