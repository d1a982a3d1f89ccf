"""How much a server may say without being asked; answers to our own requests are free."""

from __future__ import annotations

from toolgrove.budgets import RefillingBudget
from toolgrove.pool.mcp.faults import Broken
from toolgrove.types import Clock

MESSAGES = 1_000.0
BYTES = 8 * 1024 * 1024.0
BURST = 4


class InboundBudget:
    """So many messages and bytes a second; a server that talks on and on is cut off."""

    def __init__(self, clock: Clock) -> None:
        self._messages = RefillingBudget(MESSAGES, burst=MESSAGES * BURST, monotonic=clock.monotonic)
        self._bytes = RefillingBudget(BYTES, burst=BYTES * BURST, monotonic=clock.monotonic)

    def spend(self, size: int, messages: int = 1) -> None:
        """Take messages and their bytes out."""
        if not (self._messages.take(messages) and self._bytes.take(size)):
            raise Broken("sent a flood of messages that nobody asked for")
