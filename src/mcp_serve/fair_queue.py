"""The order in which one loop serves what its connections send: first come, first served, a few in each turn.

asyncio gives a turn to everything that is ready, so with hundreds of busy connections one turn serves hundreds of
requests. Whatever needs several turns (a new connection, a handshake, an answer that is awaited) would wait for all of
them several times over, while a busy connection waits once. So a turn serves `AT_ONCE` requests, and what else has
come waits here, in its order: everybody waits about once for everybody else, and never twice.

A loop that is not busy is not delayed: as long as fewer have come, each is served on the spot. A new turn is asked for
only when the share of one is used up, since that costs as much as a small part of a call. Nothing is known here about
what is served; who waits keeps what it has read, and is called once when it is its turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable

AT_ONCE = 8


class FairQueue:
    """Lets so many go on in a turn of the loop, and the others in the next turns."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = self._left = at_once
        self._waiting: deque[Callable[[], None]] = deque()

    def may_go_on(self) -> bool:
        """Whether one more may be served on the spot; otherwise it has to wait."""
        if self._left == 0:
            return False
        self._left -= 1
        if self._left == 0:
            asyncio.get_running_loop().call_soon(self._next_turn)
        return True

    def wait(self, go_on: Callable[[], None]) -> None:
        """Have it called when all that came before have been served."""
        self._waiting.append(go_on)

    def _next_turn(self) -> None:
        """Serve those that wait; what comes in this turn is served on the spot only if nobody waits."""
        turn = min(self._at_once, len(self._waiting))
        self._left = self._at_once - turn
        if self._left == 0:
            asyncio.get_running_loop().call_soon(self._next_turn)
        for _ in range(turn):
            self._waiting.popleft()()
