"""How much a server may say without being asked."""

from __future__ import annotations

from toolgrove.pool.mcp.faults import Broken
from toolgrove.types import Clock

MESSAGES = 1_000.0
BYTES = 8 * 1024 * 1024.0
BURST = 4


class Allowance:
    """Fills up with time, so many messages and bytes a second; answers to our own requests are free."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._then = clock.monotonic()
        self._messages = MESSAGES * BURST
        self._bytes = BYTES * BURST

    def spend(self, size: int, messages: int = 1) -> None:
        """Take a message out; a server that talks on and on is cut off."""
        self._messages -= messages
        self._bytes -= size
        if self._messages >= 0 and self._bytes >= 0:
            return
        now = self._clock.monotonic()
        passed, self._then = now - self._then, now
        self._messages = min(self._messages + passed * MESSAGES, MESSAGES * BURST)
        self._bytes = min(self._bytes + passed * BYTES, BYTES * BURST)
        if self._messages < 0 or self._bytes < 0:
            raise Broken("sent a flood of messages that nobody asked for")
