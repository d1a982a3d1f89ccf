"""Windows that several processes count in.

Beside the counts, the store keeps a mark that nobody changes. Where it is gone, so are the counts: the store was
emptied or began anew, and its windows are empty though calls were made in them. Each process compares the mark after
it has counted, so that it notices that in the very call that found an empty window. It also knows how many replicas
there were when the store last answered, so that each can take its share of a rate while nobody can count for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from toolgrove.notation.rate import Rate


class Quota(NamedTuple):
    """How often a holder may call."""

    holder: str
    rate: Rate


class LimitsAway(OSError):
    """The store of the limits cannot be reached; whether there is room is not known."""


class SharedWindows(Protocol):
    """Counts calls in a sliding window, by the clock of its server."""

    @property
    def replicas(self) -> int:
        """How many processes counted here when it last answered, this one included."""
        ...

    @property
    def losses(self) -> int:
        """How often this process has found its counts gone."""
        ...

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Count a call against each of them; where one has no room, which one, and for how many seconds.

        Raises LimitsAway where that cannot be known; a connection that was lost meanwhile is no reason yet.
        """

    async def close(self) -> None:
        """Let go of the connections."""


class Mark:
    """What a process knows of the mark beside the counts."""

    def __init__(self) -> None:
        self.losses = 0
        self._seen: str | None = None

    def see(self, mark: str) -> None:
        """Another one than before stands beside counts that began anew."""
        if self._seen not in (None, mark):
            self.losses += 1
        self._seen = mark
