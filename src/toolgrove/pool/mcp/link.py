"""A way to one server: stdio, Streamable HTTP or the older HTTP+SSE. Knows no tools, only messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from toolgrove.pool.mcp.era import Era
from toolgrove.pool.mcp.faults import Broken, Fault
from toolgrove.pool.mcp.jsonrpc import Message, RpcRequest

LIST_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"
LOGGED = "notifications/message"
ELICIT = "elicitation/create"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


SEVERAL = "Several calls are under way, and nothing says which of them asks. One at a time can be asked about."
Told = Callable[[str, Message], None]
"""Takes a notification: its method and its parameters."""


class Link(Protocol):
    """Carries requests to a server and what it says by itself back.

    `open` starts what runs beside it in the given tasks; `close` ends all, within a few seconds whatever the
    server does. `request` raises a Fault. `told` hears what the server says by itself, `changed` is called when such
    words may have been lost; where it `streams`, a server of the handshake era says them in a stream of its own.
    """

    changed: Callable[[], None]
    told: Told
    end: End
    streams: bool

    async def open(self, tasks: TaskGroup) -> None: ...

    async def request(self, request: RpcRequest) -> Message: ...

    async def notify(self, message: Message) -> None: ...

    def adopt(self, era: Era) -> None:
        """Write every later request as this era does."""

    async def stream(self) -> None:
        """Hear what the server says by itself, where that takes a connection of its own."""

    async def close(self) -> None: ...


class End:
    """The end of a link, which several sides may notice; the first one's reason counts."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.fault: Fault | None = None

    def __call__(self, fault: Fault) -> None:
        """Say that the link is of no more use."""
        if self.fault is None:
            self.fault = fault
            self._event.set()

    async def wait(self) -> Fault:
        """Wait for the end, and give its reason."""
        await self._event.wait()
        return self.fault or Broken("ended")


def unheard(method: str, params: Message) -> None:
    """Nobody listens yet."""


def is_request(message: Message) -> bool:
    """Whether the server wants an answer."""
    return isinstance(message.get("method"), str) and isinstance(message.get("id"), str | int)
