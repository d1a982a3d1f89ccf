"""A model that does as it is told: what it says next is a function of what it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a model sees when it is asked: its instructions and tools, its task, and what its calls gave so far."""

    system: str
    tools: tuple[str, ...]
    task: str
    results: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Say:
    """The end of a run."""

    text: str


class Ask(tuple[tuple[str, Any], ...]):
    """Calls that the model wants made: pairs of a tool and its arguments."""

    def __new__(cls, *calls: tuple[str, Any]) -> Ask:
        return super().__new__(cls, calls)


Brain = Callable[[Turn], Say | Ask]


def in_turn(*answers: Say | Ask) -> tuple[Brain, list[Turn]]:
    """A brain that gives these answers one after the other, and the turns that it has seen."""
    seen: list[Turn] = []
    left = iter(answers)

    def brain(turn: Turn) -> Say | Ask:
        seen.append(turn)
        return next(left)

    return brain, seen
