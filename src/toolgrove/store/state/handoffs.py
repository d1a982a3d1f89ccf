"""Handoffs: an answer that came to one replica, on its way to the one whose call asked for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

GoOn = Callable[[str, str], Awaitable[str]]
"""Goes on with a call of an agent, given the answer; what became of it."""


class HandoffLost(Exception):
    """The other replica may have taken the answer, and nobody knows what became of the call."""


class Handoffs(Protocol):
    """Takes answers to other replicas, and theirs to this one; what they say is text to it."""

    @property
    def here(self) -> str:
        """The name of this replica."""

    async def hand(self, holder: str, agent: str, answer: str) -> str | None:
        """What became of the call; None if its replica is gone and never had the answer. HandoffLost in between."""

    async def follow(self, go_on: GoOn) -> None:
        """Take the answers for this replica until cancelled."""
