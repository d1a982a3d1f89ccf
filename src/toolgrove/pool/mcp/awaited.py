"""An answer that is still to come, on a link where answers find their way by id."""

from __future__ import annotations

from collections import deque

import anyio

from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.jsonrpc import Message, RpcRequest, relay

_KEPT_WORDS = 64


class Awaited:
    """One who waits for an answer, and hears of progress and the log meanwhile; a slow listener misses the oldest."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._words: deque[tuple[bool, Message]] = deque(maxlen=_KEPT_WORDS)
        self._message: Message | None = None
        self._fault: Fault | None = None

    @property
    def settled(self) -> bool:
        """Whether the answer is here, or never will be."""
        return self._message is not None or self._fault is not None

    def settle(self, message: Message) -> None:
        """Take the answer."""
        self._message = message
        self._event.set()

    def fail(self, fault: Fault) -> None:
        """Say that none will come."""
        if not self.settled:
            self._fault = fault
            self._event.set()

    def tell(self, params: Message) -> None:
        """Take a word on how far it is."""
        self._words.append((False, params))
        self._event.set()

    def log(self, params: Message) -> None:
        """Take a message of the server's log."""
        self._words.append((True, params))
        self._event.set()

    async def answer(self, request: RpcRequest) -> Message:
        """Wait for the answer, and pass on what is told meanwhile."""
        while True:
            await self._event.wait()
            while self._words:
                logged, params = self._words.popleft()
                if logged and request.front is not None:
                    await request.front.log(params)
                elif not logged and request.progress is not None:
                    await relay(request.progress, params)
            if self._message is not None:
                return self._message
            if self._fault is not None:
                raise self._fault.with_traceback(None)
            self._event = anyio.Event()
