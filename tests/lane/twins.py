"""One app twice, with the lane and without it, and what may differ between their answers."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Scope

from mcp_serve.switch import SWITCH
from waiting import DEADLINE

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
SESSION = b"mcp-session-id"
THIS_SESSION = b"(the session)"
TELLING = (b"content-type", b"allow", b"www-authenticate", b"retry-after", b"cache-control")
"""The headers that tell a client something."""

Headers = list[tuple[bytes, bytes]]
Make = Callable[[], Starlette]
Apps = Callable[[], AbstractAsyncContextManager[tuple[Make, str]]]
"""Opens what two apps can share, and gives the way to make one, and the token of who asks."""


class Asked(NamedTuple):
    """A request: its head, exactly, and its body."""

    headers: Headers
    body: bytes
    method: str = "POST"
    path: str = "/mcp"


class Answer(NamedTuple):
    """An answer as far as a client can tell it from another."""

    status: int
    headers: dict[bytes, bytes]
    body: Any


def compared(answer: Answer) -> Answer:
    """An answer without what may differ; this is the whole list, with its reasons.

    - An answer to a client of the older era comes as one event on the way through the SDK, and as plain JSON on the
      lane: a client of that era must take either, so that is how it is wrapped and not what it says.
    - The id of a session is chosen at random.
    - The order of keys in an object means nothing, nor does the way in which a number or a character is written.
    """
    headers = dict(answer.headers)
    if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
        headers = {b"content-type": b"application/json"}
    return Answer(answer.status, headers, answer.body)


class Twin:
    """One of the two apps."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()
        self._session = b""
        self.pings = 0

    async def ask(self, asked: Asked) -> Answer:
        """Send a request as it is, but for the token and the session, which are this app's own."""
        headers = [(name, self._own(name, value)) for name, value in asked.headers]
        messages: list[Message] = []
        body: list[Message] = [{"type": "http.request", "body": asked.body, "more_body": False}]
        answered = asyncio.Event()

        async def receive() -> Message:
            if body:
                return body.pop()
            await answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)
            self.pings += message.get("body", b"").startswith(b": ping")
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                answered.set()

        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": asked.method,
            "scheme": "http",
            "path": asked.path,
            "raw_path": asked.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        async with asyncio.timeout(DEADLINE):
            await self._app(scope, receive, send)
        return _answer(messages)

    def _own(self, name: bytes, value: bytes) -> bytes:
        if name == SESSION:
            return value.replace(THIS_SESSION, self._session)
        return value.replace(b"(token)", self._token) if name == b"authorization" else value

    async def greet(self, path: str, capabilities: dict[str, Any] | None = None) -> None:
        """Open a session of the older era."""
        params = {
            "protocolVersion": LEGACY,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "twin", "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        head = [pair for pair in head_of(LEGACY) if pair[0] not in (SESSION, b"mcp-protocol-version")]
        opened = await self._raw_headers(Asked(head, json.dumps(hello).encode(), path=path))
        self._session = opened[SESSION]
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.ask(Asked(head_of(LEGACY), json.dumps(done).encode(), path=path))
        for number in range(3):  # what was told is taken up in the background
            ping = json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()
            await self.ask(Asked(head_of(LEGACY), ping, path=path))

    async def _raw_headers(self, asked: Asked) -> dict[bytes, bytes]:
        return (await self.ask(asked)).headers


def head_of(era: str, method: str = "", name: str = "") -> Headers:
    """The head of a request that is in order; its length is missing."""
    head = [
        (b"host", b"127.0.0.1:8000"),
        (b"authorization", b"Bearer (token)"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", era.encode()),
    ]
    if era == LEGACY:
        return [*head, (SESSION, THIS_SESSION)]
    return [*head, (b"mcp-method", method.encode()), *([(b"mcp-name", name.encode())] if name else [])]


def request(era: str, method: str, params: dict[str, Any], number: Any = 1) -> dict[str, Any]:
    """A request that is in order."""
    if era == MODERN:
        me = {"name": "twin", "version": "1"}
        meta = {META + "protocolVersion": MODERN, META + "clientInfo": me, META + "clientCapabilities": {}}
        params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def with_length(headers: Headers, body: bytes) -> Headers:
    return [*headers, (b"content-length", str(len(body)).encode())]


def _answer(messages: list[Message]) -> Answer:
    start = messages[0]
    body = b"".join(message.get("body", b"") for message in messages[1:])
    headers = {name.lower(): value for name, value in start["headers"] if name.lower() in (*TELLING, SESSION)}
    return Answer(int(start["status"]), headers, said(headers.get(b"content-type", b""), body))


def said(kind: bytes, body: bytes) -> Any:
    if kind.startswith(b"text/event-stream"):
        lines = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        events = [json.loads(line) for line in lines]
        return events[0] if len(events) == 1 else events
    try:
        return json.loads(body)
    except ValueError:
        return body


@dataclass
class Twins:
    """Both, in a loop of their own."""

    lane: Twin
    sdk: Twin
    path: str
    loop: asyncio.AbstractEventLoop = field(repr=False)

    def ask(self, asked: Asked) -> tuple[Answer, Answer]:
        """The answers of both to the same request, without what may differ."""

        async def both() -> tuple[Answer, Answer]:
            return compared(await self.lane.ask(asked)), compared(await self.sdk.ask(asked))

        mine, theirs = self.run(both())
        for answer in (mine, theirs):
            answer.headers.pop(SESSION, None)
        return mine, theirs

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(DEADLINE)


@contextmanager
def twins(apps: Apps, path: str) -> Iterator[Twins]:
    """Two apps of the same kind; the second has no lane."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stop, ready = asyncio.Event(), threading.Event()
    made: list[Twin] = []

    async def serve() -> None:
        async with apps() as (make, token), _opened(make, "on") as lane, _opened(make, "off") as sdk:
            made.extend((Twin(lane, token), Twin(sdk, token)))
            for one in made:
                await one.greet(path)
            ready.set()
            await stop.wait()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # the SDK's own, for its event streams
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    serving = asyncio.run_coroutine_threadsafe(serve(), loop)
    serving.add_done_callback(lambda _: ready.set())
    try:
        assert ready.wait(DEADLINE)
        if serving.done():
            serving.result()
        yield Twins(made[0], made[1], path, loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        serving.result(DEADLINE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE)
        loop.close()


@asynccontextmanager
async def _opened(make: Make, switch: str) -> AsyncIterator[Starlette]:
    app = make()
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = switch
    try:
        app.middleware_stack = app.build_middleware_stack()  # it looks at the switch
    finally:
        if before is None:
            os.environ.pop(SWITCH)
        else:
            os.environ[SWITCH] = before
    async with app.router.lifespan_context(app):
        yield app
