"""Windows that several processes count in."""

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

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Count a call against each of them; where one has no room, which one, and for how many seconds.

        Raises LimitsAway where that cannot be known.
        """

    async def close(self) -> None:
        """Let go of the connections."""
