"""Clients of both eras that write with idempotency keys, each below a node of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2

from e2e.wire import ERAS, MODERN, Handshake, messages
from mcp_text import told_on_wire
from replicas.fleet import Fleet
from waiting import eventually
from web.gateway import call

CLIENTS = 50
AGENTS = tuple(f"agent{number}" for number in range(CLIENTS // len(ERAS)))
PROJECT: dict[str, Any] = {
    "agents": {name: {"role": "editor", "tools": ["get_node", "add_child"]} for name in AGENTS}
    | {"planter": {"role": "editor", "tools": ["import_merge", "get_node"]}}
}


class Broken(Exception):
    """A call that was not answered: the connection ended, or somebody on the way had no answer."""


class Writer:
    """One client: an agent's token, an era, and a node below which it adds one child after the other."""

    def __init__(self, fleet: Fleet, agent: str, era: str, http: httpx2.AsyncClient) -> None:
        self.agent, self.era, self.node = agent, era, f"{agent}-{era}"
        self.version = ""
        self.added: list[str] = []
        """The nodes that it was told of, one for each key."""
        self.broken: list[str] = []
        """Why calls were not answered."""
        self.refusals: list[dict[str, Any]] = []
        self.sessions = 0
        self._fleet, self._http = fleet, http
        self._session: Handshake | None = None

    async def add(self) -> None:
        """Add one more child, in as many tries with the same key as it takes."""
        form = {"parentNodeId": self.node, "payloadType": "Note", "payloadProps": {}, "idempotencyKey": self._key}
        while True:
            try:
                told = await self.call("add_child", {**form, "versionToken": self.version})
            except Broken as problem:
                self.broken.append(repr(problem.__cause__))
                continue
            if "error" not in told:
                self.added.append(told["nodeId"])
                self.version = told["version"]
                return
            self.refusals.append(told["error"])
            await anyio.sleep(told["error"]["retryAfter"])

    @property
    def _key(self) -> str:
        return f"{self.era}-{len(self.added)}"

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool in the writer's era; a session that is not known any more is begun anew."""
        try:
            if self.era == MODERN:
                return await call(self._http, self.agent, tool, arguments)
            return await self._in_session(tool, arguments)
        except (httpx2.TransportError, ValueError) as problem:  # cut off, or HAProxy's own page
            raise Broken from problem

    async def _in_session(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        for _ in range(3):  # the replica may go between the beginning of a session and its first call
            session = self._session or await self._begun()
            answer = await session.request("tools/call", {"name": tool, "arguments": arguments})
            if answer.status_code != 404:
                return told_on_wire(messages(answer)[-1]["result"])
            self._session = None
        raise AssertionError("sessions that were just begun are not known")

    async def _begun(self) -> Handshake:
        try:
            self._session = await Handshake(self._http, self._fleet.address(self.agent)).__aenter__()
        except KeyError as problem:  # no session id: it was not a gateway that answered
            raise Broken from problem
        self.sessions += 1
        return self._session


class Writers:
    """All of them at work until they are told to stop."""

    def __init__(self, every: Sequence[Writer]) -> None:
        self.every = every
        self._stopped = False

    async def work(self, writer: Writer) -> None:
        while not self._stopped:
            await writer.add()

    async def more(self, agents: Collection[str] = AGENTS) -> None:
        """Wait until each of them, or of these agents', has written once more from beginning to end."""
        goals = [(writer, len(writer.added) + 2) for writer in self.every if writer.agent in agents]
        await eventually(lambda: all(len(writer.added) >= goal for writer, goal in goals))

    async def refused(self) -> None:
        """Wait until most have been refused; a change in doubt hears nothing before the store is back."""
        most = len(self.every) // 2
        await eventually(lambda: sum(bool(writer.refusals) for writer in self.every) > most)

    def stop(self) -> None:
        """Let them end what they are at."""
        self._stopped = True

    @property
    def broken(self) -> dict[str, list[str]]:
        """Whose calls were not answered, and why."""
        return {writer.node: writer.broken for writer in self.every if writer.broken}

    @property
    def refusals(self) -> list[dict[str, Any]]:
        """What they were refused."""
        return [refusal for writer in self.every for refusal in writer.refusals]


@asynccontextmanager
async def writing(fleet: Fleet, agents: Sequence[str] = AGENTS) -> AsyncIterator[Writers]:
    """Clients that write until the block ends, fifty if not told; each key has one effect then, at both replicas."""
    async with AsyncExitStack() as stack:
        clients = {agent: await stack.enter_async_context(fleet.http(agent)) for agent in agents}
        writers = Writers([Writer(fleet, agent, era, clients[agent]) for agent in agents for era in ERAS])
        version = await _plant(fleet, [writer.node for writer in writers.every])
        async with anyio.create_task_group() as tasks:
            for writer in writers.every:
                writer.version = version
                tasks.start_soon(writers.work, writer)
            await writers.more()
            yield writers
            writers.stop()
        for replica in fleet.replicas:
            await _check(fleet, writers, replica)


async def _plant(fleet: Fleet, nodes: Sequence[str]) -> str:
    children = [{"nodeId": node, "payloadType": "Note", "payload": {}} for node in nodes]
    document = {"nodeId": "bed", "payloadType": "Note", "payload": {}, "children": children}
    async with fleet.http("planter") as http:
        version = (await call(http, "planter", "get_node", {"nodeId": "root"}))["version"]
        form = {"json": document, "strategy": "upsert", "matchBy": "nodeId", "versionToken": version}
        return str((await call(http, "planter", "import_merge", form))["version"])


async def _check(fleet: Fleet, writers: Writers, replica: Any) -> None:
    """At a replica, each writer's node has exactly the children that it was told of."""
    async with fleet.http("planter", replica) as http:
        for writer in writers.every:
            known = {"_meta": {"toolgrove/version": writer.version}}
            told = await call(http, "planter", "get_node", {"nodeId": writer.node}, **known)
            assert told["childrenCount"] == len(set(writer.added)) == len(writer.added), (replica.name, writer.node)
