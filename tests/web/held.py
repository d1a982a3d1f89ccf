"""An HTTP API on the loopback that answers when the test says so, and notices who hangs up."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

_GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(kw_only=True)
class Held:
    """Who waits, who was let go, who went away."""

    port: int = 0
    arrived: set[str] = field(default_factory=set)
    abandoned: set[str] = field(default_factory=set)
    _released: dict[str, anyio.Event] = field(default_factory=dict)

    def tool(self, **more: Any) -> dict[str, Any]:
        """The section of `httpTools`."""
        schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
        url = f"http://127.0.0.1:{self.port}/{{key}}"
        return {"url": url, "inputSchema": schema, "allowPrivate": True, "timeout": 60, **more}

    def release(self, *keys: str) -> None:
        for key in keys:
            self._event(key).set()

    def _event(self, key: str) -> anyio.Event:
        return self._released.setdefault(key, anyio.Event())

    async def converse(self, stream: SocketStream) -> None:
        async with stream:
            with suppress(*_GONE):
                incoming = BufferedByteReceiveStream(stream)
                head = await incoming.receive_until(b"\r\n\r\n", 65_536)
                key = head.split()[1].decode().removeprefix("/")
                self.arrived.add(key)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._notice, incoming, key, group.cancel_scope)
                    await self._event(key).wait()
                    group.cancel_scope.cancel()
                if key not in self.abandoned:
                    body = json.dumps({"key": key}).encode()
                    fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
                    await stream.send(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + body)

    async def _notice(self, incoming: BufferedByteReceiveStream, key: str, scope: anyio.CancelScope) -> None:
        try:
            while True:  # a body is of no interest
                await incoming.receive()
        except _GONE:
            self.abandoned.add(key)
            scope.cancel()


@asynccontextmanager
async def holding() -> AsyncIterator[Held]:
    """Run it while the test does."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        held = Held(port=listener.extra(SocketAttribute.local_port))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, held.converse)
            yield held
            tasks.cancel_scope.cancel()
