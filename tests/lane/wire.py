"""An app on a socket of this process, and connections to it that write and read exact bytes."""

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from lane.twins import LEGACY, MODERN, SESSION, TELLING, Answer, Asked, Headers, head_of, request, said, with_length
from mcp_serve.http_server import listen, run_http
from mcp_serve.shortcut import Enter
from mcp_serve.signals import Stop
from mcp_serve.switch import SWITCH
from waiting import DEADLINE

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Served(NamedTuple):
    """What is served: the app, the way around it, and how its calls are drained."""

    app: Starlette
    enter: Enter
    drain: Callable[[float], Any]


class Wire:
    """A server, and how many requests its app has seen."""

    def __init__(self, served: Served, listening: socket.socket) -> None:
        self.stop = Stop()
        self.port: int = listening.getsockname()[1]
        self.seen = 0
        self._served, self._listening = served, listening

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen += 1
        await self._served.app(scope, receive, send)

    async def run(self) -> None:
        await run_http(self._app, self._served.drain, self._listening, self.stop, enter=self._served.enter)

    async def connect(self) -> "Connection":
        return Connection(*await asyncio.open_connection("127.0.0.1", self.port))


class Connection:
    """One connection; answers are read one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def read(self) -> tuple[bytes, bytes]:
        """The head and the body of the next answer."""
        async with asyncio.timeout(DEADLINE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if length is not None:
                return head, await self._reader.readexactly(int(length[1]))
            body = b""
            while size := int(await self._reader.readline(), 16):
                body += (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readline()
            return head, body

    async def ask(self, data: bytes) -> tuple[bytes, bytes]:
        self.write(data)
        return await self.read()

    async def line(self) -> bytes:
        async with asyncio.timeout(DEADLINE):
            return await self._reader.readline()

    async def ends(self) -> bool:
        """Whether the server closes the connection, without a further word."""
        async with asyncio.timeout(DEADLINE):
            return await self._reader.read() == b""

    def close(self) -> None:
        self._writer.close()

    async def greet(self, path: str, token: str) -> bytes:
        """Open a session of the older era; the id of it."""
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        opening = [pair for pair in head_of(LEGACY) if pair[0] not in (SESSION, b"mcp-protocol-version")]
        head, _ = await self.ask(raw(Asked(opening, json.dumps(hello).encode(), path=path), token))
        session = re.search(rb"(?i)\r\nmcp-session-id: *([^\r]+)", head)
        assert session is not None, head
        done = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        await self.ask(raw(Asked(head_of(LEGACY), done, path=path), token, session[1]))
        return session[1]


def parsed(head: bytes, body: bytes) -> Answer:
    """An answer from the wire, as far as a client can tell it from another."""
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    pairs = ((name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines))
    headers = {name: value for name, value in pairs if name in (*TELLING, SESSION, b"connection")}
    return Answer(int(first.split()[1]), headers, said(headers.get(b"content-type", b""), body))


def raw(asked: Asked, token: str, session: bytes = b"") -> bytes:
    """A request on the wire; its length is added where it is missing."""
    headers: Headers = asked.headers
    if all(name != b"content-length" for name, _ in headers):
        headers = with_length(headers, asked.body)
    lines = [b"%b %b HTTP/1.1" % (asked.method.encode(), asked.path.encode())]
    for name, value in headers:
        lines.append(name + b": " + value.replace(b"(token)", token.encode()).replace(b"(the session)", session))
    return b"\r\n".join([*lines, b"", asked.body])


def calling(path: str, name: str, arguments: dict[str, Any], era: str = MODERN, number: Any = 1) -> Asked:
    body = json.dumps(request(era, "tools/call", {"name": name, "arguments": arguments}, number)).encode()
    return Asked(head_of(era, "tools/call", name), body, path=path)


@asynccontextmanager
async def on_the_wire(served: Served, switch: str = "on") -> AsyncIterator[Wire]:
    """Serve on a free port, with the lane or without it."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = switch
    try:
        served.app.middleware_stack = served.app.build_middleware_stack()  # it looks at the switch
        wire = Wire(served, listen("127.0.0.1", 0))
        async with served.app.router.lifespan_context(served.app):
            running = asyncio.create_task(wire.run())
            try:
                await asyncio.sleep(0)
                yield wire
            finally:
                wire.stop.set()
                await asyncio.wait_for(running, DEADLINE)
    finally:
        os.environ.pop(SWITCH) if before is None else os.environ.update({SWITCH: before})
