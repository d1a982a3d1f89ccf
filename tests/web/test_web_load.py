"""A crowd at one gateway, with an upstream that does not answer and an agent that floods: nobody else notices."""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from e2e.wire import call_body, modern_headers
from mcp_text import told_on_wire
from waiting import DEADLINE, eventually
from web.gateway import AGENTS, PROJECT, Gateway, serving
from web.held import Held, holding

pytestmark = pytest.mark.anyio
CLIENTS = 1_000
FLOOD, FLOODED = 10, 20
CALLS = 2
FILES = 4_096
ADMITTED = 20
MOST_GROWN = 90
"""Megabytes; a client that was kept whole after its call would show."""


@pytest.fixture(autouse=True)
def enough_files() -> Iterator[None]:
    """As many as both ends of the connections need; the gateway inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def project(held: Held) -> dict[str, Any]:
    flooder = {"tools": ["get_node"], "rateLimit": f"{ADMITTED}/hour"}
    waiter = {"role": "editor", "tools": ["hold"]}
    agents = {**AGENTS, "flooder": flooder, "waiter": waiter}
    workspace = {**PROJECT["workspace"], "store": "sqlite:tree.db"}
    return {**PROJECT, "workspace": workspace, "httpTools": {"hold": held.tool()}, "agents": agents}


class Client:
    """One kept connection of one agent: cheap enough to have hundreds of them in one test."""

    def __init__(self, gateway: Gateway, agent: str, stream: SocketStream) -> None:
        self._stream, self._incoming = stream, BufferedByteReceiveStream(stream)
        self._line = f"POST /agents/{agent}/mcp HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n"
        self._identity = gateway.headers(agent)

    async def call(self, tool: str, arguments: dict[str, Any], id: int) -> dict[str, Any]:
        """What this very call is told."""
        body = json.dumps(call_body(tool, arguments, id)).encode()
        fields = {**modern_headers("tools/call", tool), **self._identity, "Content-Length": str(len(body))}
        head = self._line + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        await self._stream.send(head.encode() + body)
        answered = (await self._incoming.receive_until(b"\r\n\r\n", 65_536)).decode().lower()
        assert answered.startswith("http/1.1 200"), answered
        length = int(answered.partition("content-length:")[2].split()[0])
        message = json.loads(await self._incoming.receive_exactly(length))
        assert message["id"] == id
        return told_on_wire(message["result"])


@asynccontextmanager
async def clients(gateway: Gateway, agent: str, count: int) -> AsyncIterator[list[Client]]:
    """All of them connected."""
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", gateway.port)) for _ in range(count)
        ]
        yield [Client(gateway, agent, stream) for stream in streams]


def megabytes(gateway: Gateway) -> float:
    status = Path(f"/proc/{gateway.process.real_pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Wave:
    """Everybody at once, and what each of them was told."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.calm: set[int] = set()
        self.flood: Counter[str] = Counter()

    async def roll(self) -> None:
        gateway = self._gateway
        async with (
            clients(gateway, "researcher", CLIENTS) as readers,
            clients(gateway, "flooder", FLOOD) as flooders,
            anyio.create_task_group() as group,
        ):
            for number, flooder in enumerate(flooders):
                group.start_soon(self._overdo, flooder, number)
            for number, reader in enumerate(readers):
                group.start_soon(self._read, reader, number)

    async def _read(self, client: Client, number: int) -> None:
        for id in range(number * CALLS, (number + 1) * CALLS):
            answer = await client.call("get_node", {"nodeId": f"none-{id}"}, id)
            assert answer["error"]["nodeId"] == f"none-{id}", answer
            self.calm.add(id)

    async def _overdo(self, client: Client, number: int) -> None:
        for id in range(number * FLOODED, (number + 1) * FLOODED):
            answer = await client.call("get_node", {"nodeId": "root"}, id)
            self.flood[answer.get("error", {}).get("code", "answered")] += 1


@pytest.mark.long
async def test_a_crowd_is_answered_beside_a_flood_and_a_slow_upstream(tmp_path: Path) -> None:
    """Two waves: the second one must find the memory that the first one used."""
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(4 * DEADLINE):
        async with holding() as held:
            with serving(tmp_path / "project", project(held)) as gateway:
                async with clients(gateway, "waiter", FLOOD) as waiters, anyio.create_task_group() as group:

                    async def wait(client: Client, key: str) -> None:
                        answers.append(await client.call("hold", {"key": key}, 1))

                    keys = [f"k{number}" for number in range(FLOOD)]
                    for waiter, key in zip(waiters, keys, strict=True):
                        group.start_soon(wait, waiter, key)
                    await eventually(lambda: held.arrived == set(keys))
                    at_rest = megabytes(gateway)
                    waves = [Wave(gateway), Wave(gateway)]
                    used = []
                    for wave in waves:
                        await wave.roll()
                        used.append(megabytes(gateway))
                    assert answers == [], "the slow upstream still has them"
                    held.release(*keys)
    for wave in waves:
        assert wave.calm == set(range(CLIENTS * CALLS)), "every calm call has its own answer"
    assert waves[0].flood == {"answered": ADMITTED, "rate_limited": FLOOD * FLOODED - ADMITTED}
    assert waves[1].flood == {"rate_limited": FLOOD * FLOODED}
    assert sorted(answer["body"]["key"] for answer in answers) == sorted(keys)
    assert used[0] - at_rest < MOST_GROWN, used
    assert used[1] - used[0] < MOST_GROWN / 3, used
