"""Nobody waits because somebody else is busy: counted in answers of others, not in seconds.

Server and clients share one loop. Busy clients ask again as soon as they are answered, so something is always ready.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from grove_kit import ManualClock
from lane.test_differential import GATEWAY, PROJECT
from lane.twins import LEGACY, MODERN, Asked, head_of
from lane.wire import Served, Wire, calling, on_the_wire, raw
from toolgrove import Config, Grove
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
BUSY = 100
ROUNDS = {MODERN: 3, LEGACY: 8}
"""Answers that a busy connection may get while newcomers wait for their first one; to open a session takes longer."""
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
AGENT = {**PROJECT, "agents": {"writer": {"tools": ["*"], "role": "editor"}}}


class Client(asyncio.Protocol):
    """Sends a question when it is connected, and again after each answer if it is busy."""

    def __init__(self, question: bytes, *, is_busy: bool) -> None:
        self._question, self._is_busy = question, is_busy
        self._buffer, self.answer, self.answers = b"", b"", 0
        self.answered = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._question)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := _end(self._buffer)) is not None:
            self.answer, self._buffer = self._buffer[:end], self._buffer[end:]
            assert self.answer.startswith(b"HTTP/1.1 200"), self.answer
            self.answers += 1
            if not self.answered.done():
                self.answered.set_result(None)
            if self._is_busy:
                self.transport.write(self._question)


def _end(buffer: bytes) -> int | None:
    """Where the first answer ends, if it is whole."""
    head = buffer.find(b"\r\n\r\n") + 4
    if head < 4:
        return None
    length = _LENGTH.search(buffer, 0, head)
    if length is None:
        end = buffer.find(b"\r\n0\r\n\r\n") + 7
        return None if end < 7 else end
    end = head + int(length[1])
    return end if len(buffer) >= end else None


async def connected(wire: Wire, question: bytes, *, is_busy: bool) -> Client:
    make: Callable[[], Client] = lambda: Client(question, is_busy=is_busy)  # noqa: E731
    _, client = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", wire.port)
    return client


@asynccontextmanager
async def gateway() -> AsyncIterator[tuple[Wire, str]]:
    async with Grove(Config.model_validate(AGENT), clock=ManualClock()) as grove:
        made = grove.gateway()
        async with on_the_wire(Served(made.app, made.enter, made.drain)) as wire:
            yield wire, grove.tokens.issue("writer")


async def question(wire: Wire, token: str, kind: str) -> bytes:
    """What a busy client asks: by either era, or in a way that always reaches the app."""
    asked = calling(GATEWAY, "get_node", {"nodeId": "root"}, LEGACY if kind == "older" else MODERN)
    if kind == "older":
        one = await wire.connect()
        session = await one.greet(GATEWAY, token)
        one.close()
        return raw(asked, token, session)
    if kind == "app":
        asked = asked._replace(headers=[*asked.headers, (b"x-long", b"x" * 2_000)])  # longer than what is remembered
    return raw(asked, token)


def greeting(token: str) -> bytes:
    """The first request of a client of the older era."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "new", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
    plain = [pair for pair in head_of(LEGACY) if pair[0] not in (b"mcp-session-id", b"mcp-protocol-version")]
    return raw(Asked(plain, body, path=GATEWAY), token)


@contextmanager
def leaving(clients: list[Client]) -> Iterator[None]:
    try:
        yield
    finally:
        for client in clients:
            client.transport.abort()


@pytest.mark.parametrize("kind", ["newer", "older", "app"])
@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("burst", [1, 30])
async def test_newcomers_are_answered_while_each_busy_connection_gets_a_few_answers(
    burst: int, era: str, kind: str
) -> None:
    async with gateway() as (wire, token), asyncio.timeout(DEADLINE):
        asked = await question(wire, token, kind)
        first = greeting(token) if era == LEGACY else raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token)
        busy = [await connected(wire, asked, is_busy=True) for _ in range(BUSY)]
        with leaving(busy):
            await asyncio.gather(*(one.answered for one in busy))
            before = [one.answers for one in busy]
            coming = await asyncio.gather(*(connected(wire, first, is_busy=False) for _ in range(burst)))
            with leaving(coming):
                await asyncio.gather(*(one.answered for one in coming))
                meanwhile = [one.answers - before[at] for at, one in enumerate(busy)]
    assert max(meanwhile) <= ROUNDS[era], f"{max(meanwhile)} answers of one busy connection"


@pytest.mark.parametrize("kind", ["newer", "older", "app"])
async def test_connections_that_come_at_once_and_ask_alike_are_answered_alike(kind: str) -> None:
    async with gateway() as (wire, token), asyncio.timeout(DEADLINE):
        asked = await question(wire, token, kind)
        crowd = await asyncio.gather(*(connected(wire, asked, is_busy=True) for _ in range(BUSY)))
        with leaving(crowd):
            while sum(one.answers for one in crowd) < 20 * BUSY:
                await asyncio.sleep(0)
            counts = sorted(one.answers for one in crowd)
    assert counts[-1] <= 2 * counts[0], counts


@pytest.mark.parametrize("seed", range(4))
async def test_what_waits_for_its_turn_is_answered_in_its_order_however_it_was_sent(seed: int) -> None:
    """Whole, in pieces, several requests at once, and with an end of the client's side behind it."""
    draw = random.Random(seed)
    async with gateway() as (wire, token), asyncio.timeout(DEADLINE):
        learnt = await wire.connect()
        for _ in range(2):
            await learnt.ask(raw(calling(GATEWAY, "get_node", {"nodeId": "root"}), token))
        crowd = []
        for _ in range(BUSY):
            reader, writer = await asyncio.open_connection("127.0.0.1", wire.port)
            ends = draw.random() < 0.3
            numbers = [draw.randrange(1_000) for _ in range(1 if ends else draw.randint(1, 4))]
            data = b"".join(
                raw(calling(GATEWAY, "get_node", {"nodeId": "root"}, number=number), token) for number in numbers
            )
            cuts = sorted(draw.sample(range(1, len(data)), 0 if ends else draw.randint(0, 3)))
            pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            crowd.append((reader, writer, numbers, pieces, ends))
        while any(pieces for *_, pieces, _ in crowd):
            for _, writer, _, pieces, ends in crowd:
                if pieces:
                    writer.write(pieces.pop(0))
                    if ends:
                        writer.write_eof()
            for _ in range(draw.randint(0, 3)):
                await asyncio.sleep(0)
        for reader, writer, numbers, _, _ in crowd:
            for number in numbers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                assert length is not None
                assert json.loads(await reader.readexactly(int(length[1])))["id"] == number
            writer.close()
        learnt.close()
