"""More connections than a server has files for: it stays calm, and who asks something is answered."""

import contextlib
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from e2e.modules import Journal
from e2e.servers import Address, http_child, is_healthy, server_command
from ports import free_port
from waiting import DEADLINE, wait_until
from warm.command import Process

FILES = 128
SHORT = "New connections wait: Too many open files"
FULL = "connections are open, as many as fit"
pytestmark = [pytest.mark.cold, pytest.mark.requirement("FR-TRANSPORT-003")]


class Server(NamedTuple):
    """A server that may have few files open."""

    process: Process
    address: Address
    errors: Path

    def told(self, text: str, times: int = 1) -> bool:
        return self.errors.read_text("utf-8").count(text) == times

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.address.port), DEADLINE)

    def allow(self, files: int) -> None:
        """Let it have more or fewer files from now on."""
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (files, FILES))

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


Starts = Callable[[str], contextlib.AbstractContextManager[Server]]


@pytest.fixture
def starts(journal: Journal, tmp_path: Path) -> Starts:
    @contextlib.contextmanager
    def start(transport: str) -> Iterator[Server]:
        port = free_port()
        command = server_command(journal, transport=transport, port=port)
        cold = [sys.executable, *command[command.index("-m") :]]  # the limit is one of this process
        errors = tmp_path / "stderr"
        with (
            errors.open("wb") as told,
            http_child(["prlimit", f"--nofile={FILES}:{FILES}", *cold], port, stderr=told) as (process, address),
        ):
            yield Server(process, address, errors)
            assert process.poll() is None
        assert "Traceback" not in errors.read_text("utf-8")

    return start


def test_silent_connections_keep_nobody_out_and_cost_one_line(starts: Starts) -> None:
    with starts("streamable-http") as server, contextlib.ExitStack() as crowd:
        for _ in range(300):
            crowd.enter_context(server.connected())
        for _ in range(10):
            assert httpx2.get(server.address / "health", timeout=DEADLINE).status_code == 200
        assert server.told(FULL)
        assert server.files() < FILES


def test_open_streams_are_kept_and_newcomers_wait_for_a_place(starts: Starts) -> None:
    with starts("sse") as server, contextlib.ExitStack() as crowd:
        streams = []
        for _ in range(FILES // 2):
            stream = crowd.enter_context(server.connected())
            streams.append(stream)
            stream.sendall(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        late = crowd.enter_context(server.connected())
        late.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(partial(server.told, FULL))
        streams.pop().close()
        assert late.recv(65536).startswith(b"HTTP/1.1 200")
        late.close()
        assert is_healthy(server.address)
        for stream in streams:
            stream.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while stream.recv(65536):  # what it was told at its start
                    pass
                pytest.fail("a stream was ended for a newcomer")


def test_without_a_file_left_newcomers_wait_and_one_line_says_so(starts: Starts) -> None:
    with starts("streamable-http") as server:
        alone = server.files()
        for episodes in (1, 2):
            wait_until(lambda: server.files() <= alone)
            with contextlib.ExitStack() as crowd:
                server.allow(alone)
                for _ in range(20):
                    crowd.enter_context(server.connected())
                wait_until(partial(server.told, SHORT, episodes))
                server.allow(FILES)
                assert is_healthy(server.address)
                assert server.told(SHORT, episodes)
