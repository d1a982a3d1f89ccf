"""Clients over stdio that are carried to the gateway: each is served as if it had started the agent itself."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version

import anyio
import anyio.to_thread

from mcp_serve.signals import Stop
from toolgrove.errors import AgentNotFound
from toolgrove.events import Event, PoolChanged
from toolgrove.grove import Grove
from toolgrove.mcp_face import McpFace


class Carrier:
    """Serves them from one project, and keeps each one's tools up to date."""

    def __init__(self, grove: Grove) -> None:
        self._grove = grove
        self._changed: set[asyncio.Event] = set()
        grove.listen(self._hear, PoolChanged)

    def check(self, agent: str) -> None:
        """Raise if there is no such agent."""
        if agent not in self._grove.config.agents:
            raise AgentNotFound(agent, list(self._grove.config.agents))

    async def serve(self, agent: str, connection: socket.socket, stopped: asyncio.Event) -> None:
        """Serve until the client leaves, the gateway ends or the agent is no more."""
        # Aside: the SDK takes long to import, and few come this way.
        stdio = await anyio.to_thread.run_sync(import_module, "mcp_serve.stdio")
        face = McpFace(await self._grove.agent(agent), version("toolgrove"))
        stop, changed = Stop(), asyncio.Event()
        self._changed.add(changed)
        connection.setblocking(True)  # threads read and write it
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, face, changed, stop)
                tasks.start_soon(_end_with, stopped, stop)
                await stdio.run_lines(face.endpoint, stop, connection.fileno(), connection.fileno())
                tasks.cancel_scope.cancel()
        finally:
            self._changed.discard(changed)
            face.close()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # or the thread that reads would wait for ever

    async def _follow(self, face: McpFace, changed: asyncio.Event, stop: Stop) -> None:
        while True:
            await changed.wait()
            changed.clear()
            if face.agent.name not in self._grove.config.agents:
                stop.set()
                return
            face.use(await self._grove.agent(face.agent.name))

    def _hear(self, event: Event) -> None:
        for changed in self._changed:
            changed.set()


async def _end_with(stopped: asyncio.Event, stop: Stop) -> None:
    await stopped.wait()
    stop.set()
