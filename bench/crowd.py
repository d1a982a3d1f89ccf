"""Many clients at a gateway that call now and then, alone or beside one that floods and an upstream that is silent."""

import asyncio
import contextlib
import json
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.gates import Ours
from bench.measure import Round
from bench.peers import free_port
from bench.pool import running
from bench.wire import MODERN, Connection, WrongAnswer, request

PACE = 100.0
"""Calls per second of all calm clients together."""
FLOODERS, WAITING = 16, 20
FLOODER = {"tools": ["get_node"], "rateLimit": "20/hour"}
WAITER = {"role": "editor", "tools": ["slow"]}


class Client:
    """One keep-alive connection of one agent; a new one where the gateway did not keep it."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect

    async def __aenter__(self) -> "Client":
        await self._open()
        return self

    async def _open(self) -> None:
        self._connection = self._connect()
        self._reader, self._writer = await asyncio.open_connection(sock=self._connection.socket)

    async def __aexit__(self, *exc: object) -> None:
        self._writer.close()

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        asked = request(self._connection.era, "tools/call", {"name": tool, "arguments": arguments})
        if self._reader.at_eof():
            self._writer.close()
            await self._open()
        self._writer.write(self._connection.encode(asked))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length:" in head:
            length = int(head.partition(b"content-length:")[2].split()[0])
            answer = json.loads(await self._reader.readexactly(length))
        else:
            answer = json.loads(_event(await self._chunks()))
        if answer.get("id") != asked["id"]:
            raise WrongAnswer(f"asked {asked}, answered {str(answer)[:300]}")
        result: dict[str, Any] = answer["result"]
        refused = result.get("_meta", {}).get("toolgrove/error")
        return {"error": refused} if refused is not None else dict(result["structuredContent"])

    async def _chunks(self) -> bytes:
        """A body of unknown length, to its end."""
        body = bytearray()
        while length := int(await self._reader.readuntil(b"\r\n"), 16):
            body += (await self._reader.readexactly(length + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        return bytes(body)


def _event(stream: bytes) -> bytes:
    """What the last event of a stream says."""
    return stream.rpartition(b"data: ")[2].strip()


class Crowd:
    """The clients of one gateway, and what became of them."""

    def __init__(self, gate: Ours, clients: int, silent: int) -> None:
        self.gate, self._clients, self._silent = gate, clients, silent
        self.flooded = self.limited = self.held = 0

    def alone(self, seconds: float) -> Round:
        return asyncio.run(self._calm(seconds))

    def besides(self, seconds: float) -> Round:
        return asyncio.run(self._with_trouble(seconds))

    async def _calm(self, seconds: float) -> Round:
        async with contextlib.AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(Client(partial(self.gate.connect, MODERN, "a0")))
                for _ in range(self._clients)
            ]
            begun = time.perf_counter()
            waits = await asyncio.gather(*(self._now_and_then(each, begun + seconds) for each in clients))
            latencies = [latency for each in waits for latency in each]
            return Round(latencies=latencies, seconds=time.perf_counter() - begun)

    async def _now_and_then(self, client: Client, end: float) -> list[float]:
        latencies: list[float] = []
        pause = self._clients / PACE
        await asyncio.sleep(random.uniform(0, min(pause, end - time.perf_counter())))  # else all come at once
        while True:
            begun = time.perf_counter()
            answer = await client.call("get_node", {"nodeId": "root"})
            latencies.append((time.perf_counter() - begun) * 1000)
            if answer.get("nodeId") != "root":
                raise WrongAnswer(f"a calm client was told {answer}")
            pause = random.uniform(0.5, 1.5) * self._clients / PACE
            if time.perf_counter() + pause > end:
                return latencies
            await asyncio.sleep(pause)

    async def _with_trouble(self, seconds: float) -> Round:
        async with await asyncio.start_server(self._hold, "127.0.0.1", self._silent):
            waiting = [asyncio.create_task(self._wait()) for _ in range(WAITING)]
            with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:  # else it would hold up the calm clients
                port, token = self.gate.port or 0, self.gate.tokens["flooder"]
                await asyncio.wrap_future(elsewhere.submit(flood, port, token, 0.0))
                flooding = elsewhere.submit(flood, port, token, seconds)
                calm = await self._calm(seconds)
                self.flooded, self.limited = await asyncio.wrap_future(flooding)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        return calm

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.held += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
            await reader.read()

    async def _wait(self) -> None:
        async with Client(partial(self.gate.connect, MODERN, "waiter")) as client:
            await client.call("slow", {})


def flood(port: int, token: str, seconds: float) -> tuple[int, int]:
    """As many calls as some connections get through, and how many of them were limited."""
    outcomes: Counter[str] = Counter()

    async def one(end: float) -> None:
        async with Client(partial(Connection, port, "/agents/flooder/mcp", MODERN, token)) as client:
            while time.monotonic() < end:
                answer = await client.call("get_node", {"nodeId": "root"})
                outcomes[answer.get("error", {}).get("code", "")] += 1

    async def everyone() -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(one(end) for _ in range(FLOODERS)))

    asyncio.run(everyone())
    return outcomes.total(), outcomes["rate_limited"]


@contextlib.contextmanager
def crowd(folder: Path, clients: int, project: dict[str, Any]) -> Iterator[Crowd]:
    """A gateway with the agents that a crowd needs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the gateway inherits it
    silent = free_port()
    schema = {"type": "object", "properties": {}}
    slow = {"url": f"http://127.0.0.1:{silent}/", "inputSchema": schema, "allowPrivate": True, "timeout": 60}
    agents = {**project["agents"], "flooder": FLOODER, "waiter": WAITER}
    gate = Ours("crowd", folder, {**project, "agents": agents, "httpTools": {"slow": slow}})
    with running(gate):
        yield Crowd(gate, clients, silent)
