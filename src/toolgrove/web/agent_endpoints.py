"""The MCP endpoints of the agents: one each, opened as the configuration names them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

from mcp_serve.http import StreamableHTTP
from toolgrove.agent import Agent
from toolgrove.errors import AgentNotFound
from toolgrove.mcp_face import McpFace
from toolgrove.store.state import Handoffs
from toolgrove.web.identity import Principal
from toolgrove.web.other_replicas import OtherReplicas, gone_on
from toolgrove.web.session_room import SessionRoom
from toolgrove.web.sessions import Sessions

Resolve = Callable[[str], Awaitable[Agent]]


@dataclass(kw_only=True)
class AgentEndpoint:
    """Where one agent comes in over MCP."""

    face: McpFace
    mcp: StreamableHTTP
    sessions: Sessions
    closed: anyio.Event = field(default_factory=anyio.Event)


class AgentEndpoints:
    """Keeps one endpoint per agent open, and each one's tools up to date."""

    def __init__(
        self, resolve: Resolve, version: str, state_key: bytes | None = None, handoffs: Handoffs | None = None
    ) -> None:
        self._state_key, self._handoffs = state_key, handoffs
        self._resolve = resolve
        self._version = version
        self._open: dict[str, AgentEndpoint] = {}
        self._room = SessionRoom()
        self._tasks: TaskGroup | None = None
        self._changed = anyio.Event()

    @property
    def users(self) -> set[Principal]:
        """Everyone who has a session open here."""
        return set().union(*(opened.sessions.users for opened in self._open.values()))

    async def end_sessions(self, user: Principal) -> int:
        """End the sessions that a token opened, at every endpoint; how many there were."""
        return sum([await opened.sessions.end(user) for opened in list(self._open.values())])

    async def drain(self, seconds: float) -> None:
        """Let the calls that are under way at every endpoint end."""
        await asyncio.gather(*(opened.face.endpoint.drain(seconds) for opened in self._open.values()))

    @asynccontextmanager
    async def running(self, agents: Callable[[], Collection[str]]) -> AsyncIterator[None]:
        """Keep an endpoint open for every agent that there is."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            await self._update(agents())
            tasks.start_soon(self._follow, agents)
            try:
                yield
            finally:
                for opened in self._open.values():
                    opened.closed.set()
                tasks.cancel_scope.cancel()

    async def take_handoffs(self) -> None:
        """Go on with calls of ours whose answers came to another replica."""
        if self._handoffs is not None:
            await self._handoffs.follow(self._go_on)

    async def _go_on(self, agent: str, answer: str) -> str:
        opened = self._open.get(agent)
        return await gone_on(None if opened is None else opened.face.endpoint.calls, answer)

    def changed(self) -> None:
        """Look again at which agents there are, and at their tools."""
        self._changed.set()

    def find(self, agent: str) -> AgentEndpoint | None:
        """The endpoint of an agent; None if there is none."""
        return self._open.get(agent)

    def __getitem__(self, agent: str) -> AgentEndpoint:
        return self._open[agent]

    def __contains__(self, agent: str) -> bool:
        return agent in self._open

    async def _follow(self, agents: Callable[[], Collection[str]]) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            await self._update(agents())

    async def _update(self, agents: Collection[str]) -> None:
        for name in self._open.keys() - set(agents):
            self._open.pop(name).closed.set()
        for name in agents:
            try:
                agent = await self._resolve(name)
            except AgentNotFound:  # gone while the pool was asked; that change is announced as well
                continue
            opened = self._open.get(name)
            if opened is None:
                await self._add(agent)
            else:
                opened.face.use(agent)

    async def _add(self, agent: Agent) -> None:
        elsewhere = None if self._handoffs is None else OtherReplicas(self._handoffs, agent.name)
        face = McpFace(agent, self._version, self._state_key, elsewhere)
        mcp = StreamableHTTP(face.endpoint)
        opened = AgentEndpoint(face=face, mcp=mcp, sessions=Sessions(mcp, self._room, line=mcp))
        if self._tasks is not None:
            await self._tasks.start(self._keep_open, opened)
        self._open[agent.name] = opened

    async def _keep_open(self, opened: AgentEndpoint, *, task_status: TaskStatus[None]) -> None:
        # A task of its own: a session manager must be left by the task that entered it.
        try:
            async with opened.mcp.running():
                task_status.started()
                await opened.closed.wait()
        finally:
            opened.face.close()
