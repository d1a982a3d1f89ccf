"""Answers that take a moment, on a connection whose client has asked before: soon, late, in a row, or for nobody."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.modules import Journal
from e2e.servers import Address, http_child, server_command
from e2e.test_heads import answers
from e2e.wire import call_body, modern_headers
from ports import free_port
from waiting import DEADLINE, wait_until

pytestmark = pytest.mark.requirement("FR-TRANSPORT-003")


def request(tool: str, **arguments: object) -> bytes:
    body = json.dumps(call_body(tool, arguments)).encode()
    headers = {"Host": "localhost", **modern_headers("tools/call", tool), "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return b"POST /mcp HTTP/1.1\r\n" + head.encode() + b"\r\n" + body


def told(line: socket.socket, count: int = 1) -> list[object]:
    """What the next answers say."""
    found = answers(line, count)
    assert {status for status, _ in found} == {200}, found
    return [json.loads(body)["result"]["structuredContent"] for _, body in found]


@pytest.fixture
def journal(shared_journal: Journal) -> Journal:
    return shared_journal


@pytest.fixture
def line(http: Address, journal: Journal) -> Iterator[socket.socket]:
    """A connection whose server knows the heads of its requests."""
    journal.write("release first")
    with socket.create_connection(("127.0.0.1", http.port), DEADLINE) as opened:
        for known in (request("work.nap", key="first", seconds=0), request("work.hold", key="first")):
            opened.sendall(known)
            assert told(opened) == [{"key": "first"}]
        yield opened


def test_answers_come_soon_and_late_by_turns(line: socket.socket) -> None:
    for turn, seconds in enumerate([0, 0.01, 0.2, 0.01, 0.2]):
        line.sendall(request("work.nap", key=f"{turn}", seconds=seconds))
        assert told(line) == [{"key": f"{turn}"}]


def test_what_is_asked_meanwhile_is_answered_after_it(line: socket.socket, journal: Journal) -> None:
    line.sendall(request("work.hold", key="held"))
    wait_until(lambda: "started held" in journal)
    line.sendall(request("work.nap", key="next", seconds=0))
    journal.write("release held")
    assert told(line, 2) == [{"key": "held"}, {"key": "next"}]


def test_nobody_makes_an_answer_for_a_client_who_is_gone(line: socket.socket, journal: Journal) -> None:
    line.sendall(request("work.hold", key="lonely"))
    wait_until(lambda: "started lonely" in journal)
    line.close()
    wait_until(lambda: "cancelled lonely" in journal)


def test_an_answer_that_is_awaited_when_the_server_stops_still_comes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.write("release first")
    port = free_port()
    with http_child(server_command(journal, transport="streamable-http", port=port), port) as (process, address):
        with socket.create_connection(("127.0.0.1", address.port), DEADLINE) as line:
            line.sendall(request("work.hold", key="first"))
            assert told(line) == [{"key": "first"}]
            line.sendall(request("work.hold", key="last"))
            wait_until(lambda: "started last" in journal)
            process.send_signal(signal.SIGTERM)
            journal.write("release last")
            assert told(line) == [{"key": "last"}]
        assert process.wait(DEADLINE) == 0
