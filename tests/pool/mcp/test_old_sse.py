"""Servers that speak HTTP+SSE, the transport before Streamable HTTP: a real one on the official SDK, and bad ones."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import pytest

from faults.upstream import Upstream
from faults.web import read, response
from pool.mcp.mcp_kit import Hand, Journal, Watcher, eventually_ready, ready, running, web
from toolgrove.pool.mcp import old_sse
from toolgrove.pool.offer import Unavailable
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    path = tmp_path_factory.mktemp("sse") / "journal"
    with web(path, 0, "sse") as port:
        yield port, path


@pytest.fixture
def journal(shared: tuple[int, Path]) -> Journal:
    return Journal(shared[1])


@pytest.fixture
def upstream(shared: tuple[int, Path]) -> Json:
    return at(shared[0])


def at(port: int, **more: Any) -> Json:
    return {"type": "sse", "url": f"http://127.0.0.1:{port}/sse", **more}


async def test_a_real_server_is_listed_and_called(upstream: Json) -> None:
    async with ready(upstream) as hand:
        assert (await hand.ok("add", a=1, b=2))["structuredContent"] == {"sum": 3}
        assert [block["type"] for block in (await hand.ok("picture"))["content"]] == ["image", "text"]
        assert (await hand.refused("fail"))["message"] == "the disk is full"
        assert (await hand.refused("lie"))["reason"] == "bad_result"
        watcher = Watcher()
        await hand.ok("steps", client=watcher)
        assert watcher.heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_many_calls_at_a_time_each_get_their_own_answer(upstream: Json) -> None:
    async with ready(upstream) as hand:
        sums: dict[int, Any] = {}

        async def add(number: int) -> None:
            sums[number] = (await hand.ok("add", a=number, b=1))["structuredContent"]["sum"]

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(add, number)
        assert sums == {number: number + 1 for number in range(30)}


async def test_a_call_that_takes_too_long_ends_and_the_server_hears_of_it(upstream: Json, journal: Journal) -> None:
    async with ready({**upstream, "timeout": 1.0}) as hand:
        assert (await hand.refused("hang"))["reason"] == "timeout"
        await eventually(lambda: journal.of("cancelled"))
        assert await hand.text("echo", text="still here") == "still here"


async def test_what_changed_is_heard_in_the_same_stream(upstream: Json) -> None:
    async with ready(upstream) as hand:
        changes = hand.changes
        await hand.ok("reword", text="Says it once more.")
        await eventually(lambda: hand.changes > changes)
        await hand.ok("reword", text="Says it again.")


async def test_headers_go_along_with_both_kinds_of_requests(upstream: Json, journal: Journal) -> None:
    async with ready({**upstream, "headers": {"X-Plain": "as it is"}}) as hand:
        await hand.ok("echo", text="x")
    methods = {method for method, headers in journal.requests() if headers.get("x-plain") == "as it is"}
    assert methods == {"GET", "POST"}


async def test_a_server_that_went_away_is_found_again(tmp_path: Path) -> None:
    with web(tmp_path / "first", 0, "sse") as port:
        async with ready(at(port)) as hand:
            error = await hand.refused("crash")
            assert error["reason"] == "upstream_unavailable"
            assert "may have run" in error["message"]
            with web(tmp_path / "second", port, "sse"):
                await eventually_ready(hand)
                assert await hand.text("echo", text="back") == "back"


class OldServer:
    """Speaks the old transport around a server that misbehaves on demand; a few threads, and nothing waits for it."""

    def __init__(self, *, endpoint: str = "/post", begin: bytes = HEAD) -> None:
        self.endpoint, self.begin = endpoint, begin
        self._streams: list[socket.socket] = []
        self._lock = threading.Lock()

    @contextmanager
    def serving(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield listener.getsockname()[1]
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                self.hang_up()

    def hang_up(self) -> None:
        for stream in self._streams:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def put(self, data: bytes, event: bytes = b"message") -> None:
        with self._lock:
            self._streams[-1].sendall(b"event: " + event + b"\ndata: " + data + b"\n\n")

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as file:
            self._answer(connection, file)

    def _answer(self, connection: socket.socket, file: BinaryIO) -> None:
        while (request := read(file)) is not None:
            if request.method == "GET":
                self._streams.append(connection)
                self._upstream = Upstream("legacy", "-", "", self.put)
                connection.sendall(self.begin)
                self.put(self.endpoint.encode(), b"endpoint")
            else:
                connection.sendall(response("202 Accepted", b""))
                self._upstream.handle(json.loads(request.body))


async def problem_of(hand: Hand) -> str:
    with pytest.raises(Unavailable) as raised:
        await hand.resolve()
    return str(raised.value)


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("http://localhost.example/post", "on another host"),
        ("https://127.0.0.1/post", "on another host"),
        ("//127.0.0.1:9/post", "on another host"),
        ("file:///etc/passwd", "cannot be read"),
        ("http://[", "cannot be read"),
    ],
)
async def test_where_to_post_is_never_elsewhere(endpoint: str, words: str) -> None:
    with OldServer(endpoint=endpoint).serving() as port:
        async with running(at(port)) as hand:
            assert words in await problem_of(hand)


async def test_what_is_no_stream_of_events_is_said_so() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"
    for begin, words in ((page, "no stream of events"), (response("404 Not Found", b""), "HTTP 404")):
        with OldServer(begin=begin).serving() as port:
            async with running(at(port)) as hand:
                assert words in await problem_of(hand)


async def test_a_server_that_never_says_where_to_post_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_sse, "OPENING", 0.5)
    server = OldServer()
    monkeypatch.setattr(server, "put", lambda data, event=b"": None)
    with server.serving() as port:
        async with running(at(port)) as hand:
            assert "did not begin its stream" in await problem_of(hand)


@pytest.mark.parametrize(
    ("tool", "text", "reason"),
    [
        ("giant", str(9 * 1024 * 1024), "bad_result"),
        ("flood", "", "upstream_unavailable"),
        ("unparseable", "", "bad_result"),
        ("bad_content", "", "bad_result"),
        ("rpc_error", "", "upstream_rejected"),
        ("hang", "", "timeout"),
    ],
)
async def test_the_bounds_of_every_link_hold_here_too(tool: str, text: str, reason: str) -> None:
    server = OldServer()
    with server.serving() as port:
        async with ready(at(port, timeout=1.0 if tool == "hang" else DEADLINE)) as hand:
            assert (await hand.refused(tool, text=text))["reason"] == reason
            await recovered(hand)


async def recovered(hand: Hand) -> None:
    """A server whose fault is over answers again, once it was found."""
    while True:
        with suppress(Exception):
            if await hand.text("echo", text="here") == "here":
                return
        await anyio.sleep(0.01)


@pytest.mark.parametrize("tool", ["wrong_id", "duplicate", "ask", "odd_progress"])
async def test_what_a_server_does_a_little_wrong_is_forgiven(tool: str) -> None:
    with OldServer().serving() as port:
        async with ready(at(port)) as hand:
            with suppress(Exception):
                await hand.ok(tool, client=Watcher())
            assert await hand.text("echo", text="here") == "here"


async def test_a_stream_that_ends_in_a_call_leaves_its_effect_open() -> None:
    server = OldServer()
    with server.serving() as port:
        async with ready(at(port)) as hand:
            answers: list[Json] = []

            async def call() -> None:
                answers.append(await hand.refused("hold", text="x"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await eventually(held(server))
                server.hang_up()
            assert "may have run" in answers[0]["message"]


def held(server: OldServer) -> Callable[[], bool]:
    return lambda: bool(server._upstream.held)
