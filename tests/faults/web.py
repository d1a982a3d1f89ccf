"""The same fake MCP server over HTTP: bytes on a socket, so that an answer can go wrong in any place."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import BinaryIO

from faults.listener import Work, listening
from faults.upstream import MODERN, Upstream

SESSION = "mcp-session-id"
Headers = dict[str, str]


@dataclass(kw_only=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: Headers
    body: bytes

    @property
    def rpc(self) -> str:
        return str(json.loads(self.body).get("method", "")) if self.body else ""


@dataclass(kw_only=True)
class Wire:
    """The connection on which an answer goes wrong, the answer as it should be, and the moment when all ends."""

    socket: socket.socket
    answer: bytes
    over: threading.Event

    def endless(self, piece: bytes, pause: float = 0.0) -> None:
        with contextlib.suppress(OSError):
            while not self.over.wait(pause):
                self.socket.sendall(piece)


Fault = Callable[[Wire], None]


def response(status: str, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    fields = {"content-type": kind, "content-length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def reset(wire: Wire) -> None:
    """Closed without a goodbye: what is not sent is lost, and the peer gets RST."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionAbortedError


def cut(wire: Wire, after: int = 60) -> None:
    wire.socket.sendall(wire.answer[:after])
    wire.socket.shutdown(socket.SHUT_RDWR)


def cut_in_body(wire: Wire) -> None:
    wire.socket.sendall(wire.answer[:-5])
    wire.socket.shutdown(socket.SHUT_RDWR)


def blackhole(wire: Wire) -> None:
    wire.over.wait()


def drip(wire: Wire) -> None:
    """The body one byte at a time, never the whole."""
    head, _, body = wire.answer.partition(b"\r\n\r\n")
    wire.socket.sendall(head + b"\r\n\r\n")
    with contextlib.suppress(OSError):
        for byte in body[:-1]:
            wire.socket.sendall(bytes([byte]))
            if wire.over.wait(0.05):
                return
    wire.over.wait()


@cache
def bomb() -> bytes:
    """An eighth of a megabyte that becomes a thousand times as much."""
    packer = zlib.compressobj(wbits=31)
    return b"".join([*(packer.compress(b" " * (1 << 20)) for _ in range(128)), packer.flush()])


def gzip_bomb(wire: Wire) -> None:
    wire.socket.sendall(response("200 OK", bomb(), content_encoding="gzip"))


def huge(wire: Wire) -> None:
    wire.socket.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000000000\r\n\r\n{")
    wire.endless(b" " * (1 << 20))


def huge_chunked(wire: Wire) -> None:
    wire.socket.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    wire.endless(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")


EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream_without_end(wire: Wire) -> None:
    """Signs of life, never the answer."""
    wire.socket.sendall(EVENTS)
    wire.endless(chunk(b": still here\n\n"), pause=0.05)


def stream_flood(wire: Wire) -> None:
    line = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}\n\n'
    wire.socket.sendall(EVENTS)
    wire.endless(chunk(line * 100))


def stream_chatter(wire: Wire) -> None:
    """Comments without end, as fast as they are read."""
    wire.socket.sendall(EVENTS)
    wire.endless(chunk(b":\n\n" * 1_000))


def stream_long_line(wire: Wire) -> None:
    wire.socket.sendall(EVENTS + chunk(b"data: "))
    wire.endless(chunk(b"x" * 65_536))


def streamed(go: threading.Event | None = None, tail: bytes = b"") -> Fault:
    """The answer as an event, once it may go, and what follows it; the stream does not end."""

    def send(wire: Wire) -> None:
        while go is not None and not go.wait(0.01) and not wire.over.is_set():
            pass
        body = wire.answer.partition(b"\r\n\r\n")[2]
        wire.socket.sendall(EVENTS + chunk(b"data: " + body + b"\n\n") + tail)

    return send


def stream_cut(wire: Wire) -> None:
    wire.socket.sendall(EVENTS + chunk(b'data: {"jsonrpc":"2.0",'))
    wire.socket.shutdown(socket.SHUT_RDWR)


def stream_ends(wire: Wire) -> None:
    """A well-formed stream that ends before the answer."""
    wire.socket.sendall(EVENTS + chunk(b": nothing to say\n\n") + b"0\r\n\r\n")


def stream_bad_utf8(wire: Wire) -> None:
    wire.socket.sendall(EVENTS + chunk(b"data: \xff\xfe\n\n") + b"0\r\n\r\n")


def endless_head(wire: Wire) -> None:
    wire.socket.sendall(b"HTTP/1.1 200 OK\r\n")
    wire.endless(b"x-filler: " + b"x" * 1000 + b"\r\n")


def send(answer: bytes) -> Fault:
    return lambda wire: wire.socket.sendall(answer)


ANSWERS: dict[str, Fault] = {
    "reset": reset,
    "cut_in_head": cut,
    "cut_in_body": cut_in_body,
    "blackhole": blackhole,
    "drip": drip,
    "gzip_bomb": gzip_bomb,
    "huge": huge,
    "huge_chunked": huge_chunked,
    "stream_without_end": stream_without_end,
    "stream_flood": stream_flood,
    "stream_chatter": stream_chatter,
    "stream_long_line": stream_long_line,
    "stream_cut": stream_cut,
    "stream_ends": stream_ends,
    "stream_bad_utf8": stream_bad_utf8,
    "endless_head": endless_head,
    "status_500": send(response("500 Internal Server Error", b"stack trace of somebody else", "text/plain")),
    "status_503": send(response("503 Service Unavailable", b"", retry_after="1")),
    "status_401": send(response("401 Unauthorized", b"{}")),
    "status_429": send(response("429 Too Many Requests", b"{}", retry_after="1")),
    "html": send(response("200 OK", b"<html><body>Please log in</body></html>", "text/html")),
    "not_json": send(response("200 OK", b'{"jsonrpc":')),
    "empty": send(response("200 OK", b"")),
    "accepted": send(response("202 Accepted", b"")),
    "batch": send(response("200 OK", b"[]")),
    "bad_utf8": send(
        response("200 OK", b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\xff"}]}}')
    ),
    "bad_gzip": send(response("200 OK", b"not gzip at all", content_encoding="gzip")),
    "not_http": send(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "deep": send(response("200 OK", b"[" * 100_000 + b"]" * 100_000)),
}


@dataclass(kw_only=True)
class Web:
    """A server on a port; `faults` tells which JSON-RPC methods are answered how."""

    mode: str = "healthy"
    streams: bool = False
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    close_after: bool = False
    port: int = 0

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._connections: set[socket.socket] = set()
        self._replies: list[bytes] = []
        self._lock = threading.Lock()
        self._upstream = Upstream(self.mode, "-", "", self._replies.append)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def counted(self, rpc: str) -> int:
        """How many requests of a JSON-RPC method arrived."""
        return sum(request.rpc == rpc for request in self.requests)

    @contextlib.contextmanager
    def serving(self) -> Iterator[Web]:
        with listening(self._begin, self._end) as self.port:
            yield self

    def _begin(self, connection: socket.socket) -> list[Work]:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(connection)
        return [partial(self._serve, connection)]

    def _end(self) -> None:
        self._over.set()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as file:
            while (request := read(file)) is not None:
                self.requests.append(request)
                self._answer(connection, request)
                if self.close_after:
                    break
        self._connections.discard(connection)

    def _answer(self, connection: socket.socket, request: Request) -> None:
        answer = self._proper(request)
        fault = self.faults.get(request.rpc) or self.faults.get("*")
        if fault is None:
            connection.sendall(answer)
        else:
            fault(Wire(socket=connection, answer=answer, over=self._over))
            if fault in (blackhole, drip) or self._over.is_set():
                connection.close()

    def _proper(self, request: Request) -> bytes:
        if request.method != "POST":
            return response("405 Method Not Allowed", b"")
        message = json.loads(request.body)
        legacy = request.headers.get("mcp-protocol-version") != MODERN
        opens = message.get("method") in ("initialize", "server/discover")
        if legacy and not opens and request.headers.get(SESSION) not in self.sessions:
            return response("404 Not Found", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"?"}}')
        with self._lock:
            self._replies.clear()
            self._upstream.handle(message)
            replies = list(self._replies)
        if "id" not in message:
            return response("202 Accepted", b"")
        headers = {}
        if message.get("method") == "initialize":
            session = f"s{len(self.requests)}"
            self.sessions.add(session)
            headers = {"mcp_session_id": session}
        if self.streams:
            events = b"".join(b"event: message\ndata: " + reply + b"\n\n" for reply in replies)
            return response("200 OK", events, "text/event-stream", **headers)
        return response("200 OK", replies[-1] if replies else b"{}", **headers)


def read(file: BinaryIO) -> Request | None:
    """One request off a connection; None when it ends."""
    first = file.readline().decode("latin-1")
    if not first.strip():
        return None
    method, path, _ = first.split(" ", 2)
    headers: Headers = {}
    while (line := file.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = file.read(int(headers.get("content-length", "0")))
    return Request(method=method, path=path, headers=headers, body=body)


def redirect(to: str, status: str = "307 Temporary Redirect") -> Fault:
    return send(response(status, b"", location=to))
