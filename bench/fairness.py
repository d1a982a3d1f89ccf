"""`python -m bench.fairness [--seconds N] [--json FILE]`: how long newcomers wait beside busy connections.

The gateway stands beside plain uvicorn with a handler that costs as much CPU as the same request at the gateway; both
are measured turn by turn in one run. Busy connections ask for a node again as soon as they are answered, from a process
of their own; newcomers connect from another one. A client of the older era sends three requests before its first call
is answered, and so does the one that stands beside it at uvicorn. The whole takes about two minutes.
"""

import argparse
import asyncio
import contextlib
import json
import re
import selectors
import socket
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.gates import Ours
from bench.gateway import plant, project, reading, right_node, scratch
from bench.measure import Round, interleaved, percentile
from bench.pool import LOGS, Hop, running
from bench.report import Report, Table, circumstances, say
from bench.wire import ERAS, INITIALIZED, LEGACY, MODERN, Connection, drive, initialize

BUSY = (100, 400)
BURSTS = (1, 30)
MOST = 1.5
HALF = 2.0
"""At most so many times the calls of one connection get another one served."""
SETTLE = 0.5
PAUSE = 0.1
ROUNDS = 2
WAIT = 60.0


@dataclass(frozen=True, kw_only=True)
class Door:
    """Where the clients of one subject connect."""

    port: int
    path: str
    token: str

    def connection(self, era: str) -> Connection:
        return Connection(self.port, self.path, era, self.token)

    def session(self) -> bytes:
        """A new session, whose connection is not needed any more."""
        with contextlib.closing(self.connection(LEGACY)) as one:
            head = one.encode(reading("root", LEGACY)).partition(b"\r\n\r\n")[0]
        return head.partition(b"mcp-session-id: ")[2] or b"none"

    def encoded(self, era: str, message: dict[str, Any], session: bytes = b"") -> bytes:
        """A request of a client that has, in the older era, opened a session already, or opens it now."""
        body = json.dumps(message, separators=(",", ":")).encode()
        more = ""
        if era == MODERN:
            more = f"mcp-protocol-version: {era}\r\nmcp-method: tools/call\r\nmcp-name: get_node\r\n"
        elif session:
            more = f"mcp-protocol-version: {era}\r\nmcp-session-id: {session.decode()}\r\n"
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n"
            f"authorization: Bearer {self.token}\r\n{more}\r\n"
        )
        return head.encode() + body


# Busy connections.


def opened(door: Door, era: str, count: int) -> list[bytes]:
    """Sessions of the older era; a client of the newer one has none."""
    return [b""] * count if era == MODERN else [door.session() for _ in range(count)]


def busy(door: Door, era: str, sessions: list[bytes], seconds: float) -> list[int]:
    """How often each of the connections was answered, one for each session; they all connect at once."""
    lines = [_Line(door, door.encoded(era, reading("root", era), session)) for session in sessions]
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for line in lines:
            line.register(selector)
        while (now := time.monotonic()) < end:
            for key, _ in selector.select(end - now):
                key.data.go_on()
    for line in lines:
        line.socket.close()
    return [line.answers for line in lines]


class _Line:
    """A connection that asks again as soon as it is answered."""

    def __init__(self, door: Door, question: bytes) -> None:
        self.socket, self._question, self.answers, self._buffer = socket.socket(), question, 0, b""
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", door.port))

    def register(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        selector.register(self.socket, selectors.EVENT_WRITE, self)

    def go_on(self) -> None:
        if self._selector.get_key(self.socket).events == selectors.EVENT_WRITE:
            self._selector.modify(self.socket, selectors.EVENT_READ, self)
            self.socket.send(self._question)
            return
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("The server closed a busy connection")
        self._buffer += data
        if is_whole(self._buffer):
            if not self._buffer.startswith(b"HTTP/1.1 200"):
                raise ConnectionError(f"A busy connection was answered {self._buffer[:300]!r}")
            self._buffer = b""
            self.answers += 1
            self.socket.send(self._question)


_LENGTH = re.compile(rb"content-length: *(\d+)", re.I)


def is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = _LENGTH.search(head)
    return body.endswith(b"0\r\n\r\n") if length is None else len(body) >= int(length[1])


# Newcomers.


@dataclass(frozen=True, kw_only=True)
class Waited:
    """Milliseconds from connecting to the first answer, and to the answer of the first call."""

    first: float
    called: float


def newcomers(door: Door, era: str, burst: int, seconds: float, steps: int = 3, pause: float = PAUSE) -> list[Waited]:
    """Bursts of new connections, each of which makes one call."""

    async def come() -> list[Waited]:
        found: list[Waited] = []
        end = time.monotonic() + seconds
        while not found or time.monotonic() < end:
            found += await asyncio.gather(*(_newcomer(door, era, steps) for _ in range(burst)))
            await asyncio.sleep(pause)
        return found

    return asyncio.run(asyncio.wait_for(come(), WAIT))


async def _newcomer(door: Door, era: str, steps: int) -> Waited:
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    session, first = b"", 0.0
    try:
        for message in _messages(era)[:steps]:
            head = await _asked(reader, writer, door.encoded(era, message, session))
            named = re.search(rb"mcp-session-id: *([^\r]+)", head, re.I)
            session = named[1] if named else session or b"none"
            first = first or (time.perf_counter() - begun) * 1000
        return Waited(first=first, called=(time.perf_counter() - begun) * 1000)
    finally:
        writer.close()


def _messages(era: str) -> list[dict[str, Any]]:
    """What a client sends up to its first call."""
    asked = reading("root", era)
    return [asked] if era == MODERN else [initialize(), INITIALIZED, asked]


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: bytes) -> bytes:
    writer.write(question)
    answer = b""
    while not is_whole(answer):
        data = await reader.read(1 << 16)
        if not data:
            raise ConnectionError("The server closed a new connection")
        answer += data
    if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
        raise ConnectionError(f"A newcomer was answered {answer[:300]!r}")
    return answer


# Both together.


class Subject:
    """A server, and where its clients connect."""

    def __init__(self, hop: Hop, door: Door) -> None:
        self.hop, self.door = hop, door

    def cost(self, era: str) -> float:
        """Milliseconds of the server's CPU for a call, with sixteen connections."""
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(contextlib.closing(self.door.connection(era))) for _ in range(16)]
            right = right_node if isinstance(self.hop, Ours) else _anything
            asking = partial(drive, connections, lambda: reading("root", era), seconds=0.3, most=1600, right=right)
            return interleaved(["one"], lambda _: self.hop.cpu_of(asking), rounds=5)["one"].cpu

    def cost_of_steps(self, steps: int) -> float:
        """Milliseconds of the server's CPU for a newcomer of the older era, up to one of its requests."""

        def come() -> Round:
            waited = newcomers(self.door, LEGACY, 1, 0.3, steps, 0)
            return Round(latencies=[each.called for each in waited], seconds=1)

        return interleaved(["one"], lambda _: self.hop.cpu_of(come), rounds=3)["one"].cpu


def _anything(asked: dict[str, Any], answer: dict[str, Any]) -> None:
    """The answer of plain uvicorn is not looked at."""


@dataclass(kw_only=True)
class Found:
    """What was measured of one subject."""

    waited: list[Waited] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)
    """Of each busy connection, in each round."""

    def add(self, more: "Found") -> None:
        self.waited += more.waited
        self.answers += more.answers

    @property
    def uneven(self) -> float:
        """The most calls of one connection, as a multiple of the fewest of another in the same round."""
        return max(max(each) / max(1, min(each)) for each in self.answers)

    @property
    def calls(self) -> float:
        return float(sum(map(sum, self.answers)))


def measured(subject: Subject, pool: Executor, era: str, count: int, burst: int, seconds: float) -> Found:
    sessions = opened(subject.door, era, count)
    crowd = pool.submit(busy, subject.door, era, sessions, seconds + 2 * SETTLE)
    time.sleep(SETTLE)
    waited = pool.submit(newcomers, subject.door, era, burst, seconds).result()
    return Found(waited=waited, answers=[crowd.result()])


def fairness(report: Report, folder: Path, seconds: float) -> None:
    ours = Ours("ours", folder / "fair", project(f"sqlite:{folder}/fair.db"))
    plain = Hop.over_http("uvicorn", "burning", LEGACY, "-")
    with running(ours, plain), ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(abs, range(4)))  # its processes have started
        plant(ours, 10)
        subjects = {
            "ours": Subject(ours, Door(port=ours.port or 0, path="/agents/a0/mcp", token=ours.tokens["a0"])),
            "uvicorn": Subject(plain, Door(port=plain.port or 0, path="/mcp", token="none")),
        }
        for era in ERAS:
            table = report.table(f"Newcomers beside busy connections, {era}, ms (ratio to plain uvicorn)")
            costs = _levelled(table, subjects, era)
            say(f"{era}: a call costs {costs['ours']:.3f} ms, at uvicorn {costs['uvicorn']:.3f} ms")
            for count in BUSY:
                for burst in BURSTS:
                    say(f"{era}: {count} busy, {burst} at once")
                    found = {name: Found() for name in subjects}
                    for name in [*subjects] * ROUNDS:
                        found[name].add(measured(subjects[name], pool, era, count, burst, seconds / ROUNDS))
                    _add(table, era, count, burst, found)


def _levelled(table: Table, subjects: dict[str, Subject], era: str) -> dict[str, float]:
    """Make each kind of request cost the same at both."""
    ours, plain = subjects["ours"], subjects["uvicorn"]

    def burn(method: str, milliseconds: float) -> None:
        plain.hop.get(f"burn?method={method}&us={max(0, round(milliseconds * 1000))}")

    for message in _messages(era):
        burn(message["method"], 0)
    burn("tools/call", ours.cost(era) - plain.cost(era))
    for steps, message in enumerate(_messages(era)[:-1], 1):
        burn(message["method"], ours.cost_of_steps(steps) - plain.cost_of_steps(steps))
    costs = {name: each.cost(era) for name, each in subjects.items()}
    table.add("a call, ms of the server's CPU", dict(costs), ratio=costs["ours"] / costs["uvicorn"])
    if era == LEGACY:
        newcomer = {name: each.cost_of_steps(3) for name, each in subjects.items()}
        table.add("… a newcomer up to its first call", dict(newcomer), ratio=newcomer["ours"] / newcomer["uvicorn"])
    return costs


def _add(table: Table, era: str, count: int, burst: int, found: dict[str, Found]) -> None:
    where = f"{count} busy, {burst} at once"
    kinds = ("called",) if era == MODERN else ("first", "called")
    for kind in kinds:
        for share in (50, 99):
            values = {
                name: percentile([getattr(each, kind) for each in one.waited], share) for name, one in found.items()
            }
            ratio = values["ours"] / values["uvicorn"]
            what = "to the first answer" if kind == "first" or era == MODERN else "to the first call's answer"
            judged = {"target": f"≤ {MOST:g}×", "met": ratio <= MOST}
            table.add(f"{where}: {what}, p{share}", dict(values), ratio=ratio, **judged)
    table.add("… calls of all busy ones", {name: one.calls for name, one in found.items()})
    uneven = {name: one.uneven for name, one in found.items()}
    judged = {"target": f"≤ {HALF:g}", "met": uneven["ours"] <= HALF}
    table.add("… most calls of a busy one, as a multiple of the fewest", dict(uneven), **judged)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    report = Report(circumstances(False, ("starlette", "uvicorn", "httptools"), "plain uvicorn on asyncio's loop"))
    with scratch() as folder:
        fairness(report, folder, chosen.seconds)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
