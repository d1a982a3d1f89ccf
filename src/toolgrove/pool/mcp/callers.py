"""The calls under way on a link where a word of the server does not say which of them it is about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from toolgrove.pool.mcp.jsonrpc import Message, RpcRequest


class Callers:
    """Tells whose a word is where that is clear."""

    def __init__(self) -> None:
        self._open: dict[int, RpcRequest] = {}
        self._seen: set[str] = set()

    def begin(self, request: RpcRequest) -> None:
        """Remember a request that is made for somebody."""
        if request.whose:
            self._open[request.id] = request
            self._seen.add(request.whose)

    def end(self, request: RpcRequest) -> None:
        """It is answered, or given up."""
        self._open.pop(request.id, None)

    @property
    def several(self) -> bool:
        """Whether more than one is under way."""
        return len(self._open) > 1

    def only(self) -> RpcRequest | None:
        """The one call that is under way."""
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    def asked(self, question: Message, send: Callable[[Message], Awaitable[None]]) -> bool:
        """Put a question to the one that is under way; False where there is none that takes it."""
        request = self.only()
        return request is not None and request.front is not None and request.front.ask(question, send)

    def surely(self) -> RpcRequest | None:
        """The same, if nobody else ever called here: a late word could be about another's call."""
        return self.only() if len(self._seen) == 1 else None
