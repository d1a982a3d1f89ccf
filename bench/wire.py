"""Raw clients: they write bytes, read bytes, and look at the answers only when the clock has stopped."""

import itertools
import json
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from bench.measure import Round

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
ADD = "math.add"
TIMEOUT = 20.0
_LENGTH = re.compile(rb"content-length: *(\d+)")
_META = "io.modelcontextprotocol/"
ME = {"name": "bench", "version": "1"}

_ids = itertools.count(1)


class WrongAnswer(Exception):
    """A subject answered something else than it was asked for."""


def initialize() -> dict[str, Any]:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": ME}
    return {"jsonrpc": "2.0", "id": next(_ids), "method": "initialize", "params": params}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(era: str, method: str, params: dict[str, Any], number: int | None = None) -> dict[str, Any]:
    if era == MODERN:
        meta = {_META + "protocolVersion": MODERN, _META + "clientInfo": ME, _META + "clientCapabilities": {}}
        params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": next(_ids) if number is None else number, "method": method, "params": params}


def call(era: str, number: int | None = None, a: int | None = None) -> dict[str, Any]:
    """A call of the adding tool whose right answer differs from every other call's."""
    made = request(era, "tools/call", {"name": ADD, "arguments": {"a": a or 0, "b": 1}}, number)
    made["params"]["arguments"]["a"] = made["id"] if a is None else a
    return made


def listing(era: str) -> dict[str, Any]:
    return request(era, "tools/list", {})


def check(asked: dict[str, Any], answer: dict[str, Any], tools: int | None = None) -> None:
    """The answer belongs to the question: same id, right sum, or so many tools."""
    result = answer.get("result", {})
    if answer.get("id") != asked["id"]:
        raise WrongAnswer(f"asked {asked['id']}, answered {answer.get('id')}: {str(answer)[:300]}")
    if asked["method"] == "tools/list":
        if len(result.get("tools", ())) < (tools or 1):
            raise WrongAnswer(f"{len(result.get('tools', ()))} tools listed: {str(answer)[:300]}")
    elif json.loads(result["content"][0]["text"]) != {"sum": asked["params"]["arguments"]["a"] + 1}:
        raise WrongAnswer(f"asked {asked}, answered {str(answer)[:300]}")


class Connection:
    """One HTTP/1.1 connection of one MCP client."""

    def __init__(self, port: int, path: str, era: str, token: str = "") -> None:
        self._address, self._path, self.era, self._session = ("127.0.0.1", port), path, era, b""
        self._told_version = era == MODERN
        self._identity = f"authorization: Bearer {token}\r\n" if token else ""
        self.socket = socket.create_connection(self._address, timeout=TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer, self._head, self._length = bytearray(), -1, -1
        if era == LEGACY:
            head = self.ask(initialize())[0]
            if session := re.search(rb"mcp-session-id: *([^\r]+)", head, re.I):  # there are servers without
                self._session = b"mcp-session-id: " + session[1] + b"\r\n"
            self._told_version = True
            self.ask(INITIALIZED)

    def encode(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message, separators=(",", ":")).encode()
        routing = f"mcp-protocol-version: {self.era}\r\n" if self._told_version else ""
        if self.era == MODERN:
            name = message["params"].get("name")
            routing += f"mcp-method: {message['method']}\r\n" + (f"mcp-name: {name}\r\n" if name else "")
        head = (
            f"POST {self._path} HTTP/1.1\r\nhost: 127.0.0.1:{self._address[1]}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n{self._identity}{routing}"
        )
        return head.encode() + self._session + b"\r\n" + body

    def ask(self, message: dict[str, Any]) -> tuple[bytes, bytes]:
        self.socket.sendall(self.encode(message))
        while not self.read():
            pass
        return self.take()

    def read(self) -> bool:
        """Take what has arrived; True when the answer is whole."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("The server closed the connection")
        buffer = self._buffer
        buffer += data
        if self._head < 0:
            self._head = buffer.find(b"\r\n\r\n") + 4
            if self._head < 4:
                self._head = -1
                return False
            found = _LENGTH.search(buffer[: self._head].lower())
            self._length = int(found[1]) if found else -1
        if self._length >= 0:
            return len(buffer) >= self._head + self._length
        return buffer.endswith(b"\r\n0\r\n\r\n") or (len(buffer) == self._head + 5 and buffer.endswith(b"0\r\n\r\n"))

    def take(self) -> tuple[bytes, bytes]:
        head, body = bytes(self._buffer[: self._head]), bytes(self._buffer[self._head :])
        self._buffer, self._head, self._length = bytearray(), -1, -1
        return head, body

    def close(self) -> None:
        self.socket.close()


def message_of(head: bytes, body: bytes) -> dict[str, Any]:
    """The JSON-RPC message in an answer, whether it is plain, chunked or an event stream."""
    if b"transfer-encoding: chunked" in head.lower():
        body = b"".join(_chunks(body))
    if b"text/event-stream" in head.lower():
        data = (line[5:] for line in body.splitlines() if line.startswith(b"data:"))
        body = next(line for line in data if line.strip())
    message: dict[str, Any] = json.loads(body)
    return message


def _chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, body = body.partition(b"\r\n")
        yield body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]


Make = Callable[[], dict[str, Any]]


def drive(
    connections: list[Connection],
    make: Make,
    *,
    seconds: float,
    most: int,
    tools: int | None = None,
    wait: float = TIMEOUT,
    right: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
    ahead: int | None = None,
) -> Round:
    """One question at a time on every connection, until the time or the number is used up.

    `right` raises for a wrong answer; without it the questions are sums or listings. They are written before the clock
    starts, or only so many `ahead`: a server does not wait for long for the first words on a connection.
    """
    each = most // len(connections)
    prepared = [[(asked := make(), one.encode(asked)) for _ in range(min(each, ahead or each))] for one in connections]
    left = dict.fromkeys(connections, each)
    answers: list[tuple[dict[str, Any], tuple[bytes, bytes]]] = []
    latencies: list[float] = []
    clock = time.perf_counter
    with selectors.DefaultSelector() as selector:
        pending: dict[Connection, tuple[float, dict[str, Any]]] = {}

        def put(one: Connection, questions: list[tuple[dict[str, Any], bytes]]) -> None:
            if not questions:
                questions.append((made := make(), one.encode(made)))
            asked, data = questions.pop()
            left[one] -= 1
            pending[one] = clock(), asked
            one.socket.sendall(data)

        for one, questions in zip(connections, prepared, strict=True):
            selector.register(one.socket, selectors.EVENT_READ, (one, questions))
        started = clock()
        for one, questions in zip(connections, prepared, strict=True):
            put(one, questions)
        while pending:
            ready = selector.select(wait)
            if not ready:
                raise TimeoutError(f"No answer within {wait} s")
            for key, _ in ready:
                one, questions = key.data
                if one.read():
                    now = clock()
                    since, asked = pending.pop(one)
                    latencies.append((now - since) * 1000)
                    answers.append((asked, one.take()))
                    if left[one] and now - started < seconds:
                        put(one, questions)
                    else:
                        selector.unregister(one.socket)  # the server may close it, being idle
        spent = clock() - started
    for asked, (head, body) in answers:
        answer = message_of(head, body)
        check(asked, answer, tools) if right is None else right(asked, answer)
    return Round(latencies=latencies, seconds=spent)


class Pipe:
    """An MCP client over the standard streams of a process."""

    def __init__(self, into: BinaryIO, out: BinaryIO, era: str) -> None:
        self._into, self._out = into, out
        if era == LEGACY:
            self._put(initialize())
            self._out.readline()
            self._put(INITIALIZED)

    def _put(self, message: dict[str, Any]) -> None:
        self._into.write(json.dumps(message).encode() + b"\n")
        self._into.flush()

    def drive(self, make: Make, *, in_flight: int, seconds: float, most: int) -> Round:
        questions = [make() for _ in range(most)]
        lines = [json.dumps(asked, separators=(",", ":")).encode() + b"\n" for asked in questions]
        asked, put_at = {each["id"]: each for each in questions}, {}
        answers, clock = [], time.perf_counter
        started = clock()

        def put() -> None:
            put_at[questions[-1]["id"]] = clock()
            questions.pop()
            self._into.write(lines.pop())
            self._into.flush()

        for _ in range(in_flight):
            put()
        latencies: list[float] = []
        while len(latencies) < len(put_at):
            line = self._out.readline()
            if not line:
                raise ConnectionError("The server closed its output")
            now, answer = clock(), json.loads(line)
            latencies.append((now - put_at[answer["id"]]) * 1000)
            answers.append(answer)
            if questions and now - started < seconds:
                put()
        spent = clock() - started
        for answer in answers:
            check(asked[answer["id"]], answer)
        return Round(latencies=latencies, seconds=spent)
