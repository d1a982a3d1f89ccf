"""Requests on the wire: heads that never end, that two readers could read differently, or that are unusual."""

import json
import socket
from collections.abc import Iterator

import h11
import pytest

from e2e.servers import Address
from e2e.wire import call_body, modern_headers
from waiting import DEADLINE

pytestmark = pytest.mark.requirement("FR-TRANSPORT-003")
BODY = json.dumps(call_body("math.add", {"a": 1, "b": 2})).encode()
HEAD = b"".join(
    f"{name}: {value}\r\n".encode()
    for name, value in {"Host": "localhost", **modern_headers("tools/call", "math.add")}.items()
)
START = b"POST /mcp HTTP/1.1\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKS = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)


@pytest.fixture
def line(http: Address) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", http.port), DEADLINE) as opened:
        yield opened


def answers(line: socket.socket, count: int = 1) -> list[tuple[int, bytes]]:
    """Status and body of the next answers, as h11 reads them."""
    found: list[tuple[int, bytes]] = []
    rest = b""
    for _ in range(count):
        reader, status, body = h11.Connection(h11.CLIENT), 0, b""
        reader.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        reader.send(h11.EndOfMessage())
        if rest:  # nothing would mean the end
            reader.receive_data(rest)
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                reader.receive_data(line.recv(65536))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
        rest = reader.trailing_data[0]
        found.append((status, body))
    return found


def assert_sum(answer: tuple[int, bytes]) -> None:
    status, body = answer
    assert (status, json.loads(body)["result"]["isError"]) == (200, False), answer


@pytest.mark.parametrize(
    "unusual",
    [
        LENGTH,
        b"Content-Length:  %d \t\r\n" % len(BODY),
        b"X-Spaced: \t value \t \r\n" + LENGTH,
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n" + LENGTH,
        b"connection: upgrade\r\nupgrade: websocket\r\n" + LENGTH,
    ],
    ids=["plain", "spaced length", "spaced value", "upgrade to HTTP/2", "upgrade to WebSocket"],
)
def test_an_unusual_head_is_understood_and_the_connection_goes_on(line: socket.socket, unusual: bytes) -> None:
    for _ in range(2):
        line.sendall(START + HEAD + unusual + b"\r\n" + BODY)
        assert_sum(answers(line)[0])


@pytest.mark.parametrize("cut", ["in the name", "in the value", "before the body", "in the body", "everywhere"])
def test_an_upgrade_in_several_segments_is_ignored_like_one_in_one(line: socket.socket, cut: str) -> None:
    head = START + HEAD + LENGTH + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    request = head + BODY
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    places = {
        "in the name": [head.index(b"Upgrade: h2c") + 3],
        "in the value": [head.index(b"h2c") + 1],
        "before the body": [len(head)],
        "in the body": [len(head) + 5],
        "everywhere": list(range(1, len(request))),
    }
    for _ in range(2):
        begun = 0
        for place in [*places[cut], len(request)]:
            line.sendall(request[begun:place])
            begun = place
        assert_sum(answers(line)[0])


def test_requests_that_wish_for_an_upgrade_may_come_before_the_answers_to_those_before_them(
    line: socket.socket,
) -> None:
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\n"
    chunked = START + HEAD + upgrade + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"\r\n"
    line.sendall(chunked + START + HEAD + upgrade + LENGTH + b"\r\n" + BODY + START + HEAD + LENGTH + b"\r\n" + BODY)
    for answer in answers(line, 3):
        assert_sum(answer)


def test_requests_may_come_before_the_answers_to_those_before_them(line: socket.socket) -> None:
    line.sendall((START + HEAD + LENGTH + b"\r\n" + BODY) * 3)
    for answer in answers(line, 3):
        assert_sum(answer)


def test_a_trailer_is_no_header(line: socket.socket) -> None:
    trailer = b"Mcp-Name: secret.vault\r\nHost: elsewhere.example\r\n\r\n"
    line.sendall(START + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + trailer)
    assert_sum(answers(line)[0])


@pytest.mark.parametrize(
    "head",
    [
        LENGTH + b"Transfer-Encoding: chunked\r\n",
        LENGTH + b"Content-Length: 7\r\n",
        LENGTH + LENGTH,
        b"Content-Length: +7\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        LENGTH + b"X-Folded: one\r\n two\r\n",
        LENGTH + b"X-Name : value\r\n",
        LENGTH + b"X-Bare: one\nX-Line: two\r\n",
        LENGTH + b"X-Nul: a\0b\r\n",
    ],
)
def test_a_head_that_two_readers_could_read_differently_is_refused(line: socket.socket, head: bytes) -> None:
    line.sendall(START + HEAD + head + b"\r\n" + CHUNKS + b"\r\n")
    assert answers(line)[0][0] == 400
    assert line.recv(1) == b"", "what follows is not read"


@pytest.mark.parametrize(
    "start",
    [
        b"POST /" + b"x" * 1000,
        START + b"X-Endless: ",
        START + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"X-Endless: ",
    ],
    ids=["address", "header", "trailer"],
)
def test_what_never_ends_is_cut_off(line: socket.socket, start: bytes) -> None:
    sent = 0
    with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe, at some byte
        line.sendall(start)
        while sent < 64 * 2**20:
            line.sendall(b"x" * 65536)
            sent += 65536
    assert sent < 32 * 2**20
