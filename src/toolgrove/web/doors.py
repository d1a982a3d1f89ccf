"""The doors of the agents: one MCP endpoint each, opened as the configuration names them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.http import StreamableHTTP
from toolgrove.agent import Agent
from toolgrove.errors import AgentNotFound
from toolgrove.faces import McpFace
from toolgrove.web.identity import Principal
from toolgrove.web.sessions import Sessions

Resolve = Callable[[str], Awaitable[Agent]]


@dataclass(kw_only=True)
class Door:
    """Where one agent comes in over MCP."""

    face: McpFace
    mcp: StreamableHTTP
    sessions: Sessions
    closed: anyio.Event = field(default_factory=anyio.Event)


class Doors:
    """Keeps one door per agent, and each door's tools up to date."""

    def __init__(self, resolve: Resolve, version: str) -> None:
        self._resolve = resolve
        self._version = version
        self._doors: dict[str, Door] = {}
        self._open: dict[str, Endpoint] = {}
        self._tasks: TaskGroup | None = None
        self._changed = anyio.Event()

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """The endpoints that are open, whenever one looks."""
        return self._open.values()

    @property
    def users(self) -> set[Principal]:
        """Who opened sessions."""
        return set().union(*(door.sessions.users for door in self._doors.values()))

    async def end_sessions(self, user: Principal) -> int:
        """End the sessions that a token opened, at every door; how many there were."""
        return sum([await door.sessions.end(user) for door in list(self._doors.values())])

    @asynccontextmanager
    async def running(self, agents: Callable[[], Collection[str]]) -> AsyncIterator[None]:
        """Keep a door open for every agent that there is."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            await self._update(agents())
            tasks.start_soon(self._follow, agents)
            try:
                yield
            finally:
                for door in self._doors.values():
                    door.closed.set()
                tasks.cancel_scope.cancel()

    def changed(self) -> None:
        """Look again at which agents there are, and at their tools."""
        self._changed.set()

    def __getitem__(self, agent: str) -> Door:
        return self._doors[agent]

    def __contains__(self, agent: str) -> bool:
        return agent in self._doors

    async def _follow(self, agents: Callable[[], Collection[str]]) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            await self._update(agents())

    async def _update(self, agents: Collection[str]) -> None:
        for name in self._doors.keys() - set(agents):
            self._doors.pop(name).closed.set()
            self._open.pop(name)
        for name in agents:
            try:
                agent = await self._resolve(name)
            except AgentNotFound:  # gone while the pool was asked; that change is told of as well
                continue
            door = self._doors.get(name)
            if door is None:
                await self._add(agent)
            else:
                door.face.use(agent)

    async def _add(self, agent: Agent) -> None:
        face = McpFace(agent, self._version)
        mcp = StreamableHTTP(face.endpoint)
        door = Door(face=face, mcp=mcp, sessions=Sessions(mcp))
        if self._tasks is not None:
            await self._tasks.start(self._keep_open, door)
        self._doors[agent.name] = door
        self._open[agent.name] = face.endpoint

    async def _keep_open(self, door: Door, *, task_status: TaskStatus[None]) -> None:
        # A task of its own: a session manager must be left by the task that entered it.
        async with door.mcp.running():
            door.face.endpoint.loop = asyncio.get_running_loop()
            task_status.started()
            await door.closed.wait()
