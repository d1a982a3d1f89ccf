"""Lines of JSON over a connection."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any

import anyio

MAX_LINE = 2**26
_PIECE = 2**16


class Wire:
    """Reads and writes them."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._held = b""
        self._loop = asyncio.get_running_loop()
        self._sending = anyio.Lock()

    async def line(self) -> bytes:
        """The next line; empty at the end."""
        while b"\n" not in self._held:
            piece = await self._loop.sock_recv(self.connection, _PIECE)
            if not piece:
                return b""
            self._held += piece
            if len(self._held) > MAX_LINE:
                raise ValueError("a message is too long")
        line, _, self._held = self._held.partition(b"\n")
        return line

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one line."""
        async with self._sending:
            await self._loop.sock_sendall(self.connection, json.dumps(message).encode() + b"\n")
