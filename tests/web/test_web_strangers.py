"""What somebody without a token can cost a gateway: an answer, and nothing of what the others have."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import pytest

from waiting import DEADLINE
from web.gateway import Gateway

CLOSED = [
    "/agents/editor/mcp",
    "/agents/editor/runs",
    "/api/approvals/x",
    "/health",
    "/ready",
    "/console",
    "/",
    "/no/such/address",
]
HALF = 2**21


def connected(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), DEADLINE)


def head(path: str, length: int, more: str = "") -> bytes:
    kind = "Content-Type: application/json"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def resident(gateway: Gateway) -> int:
    """Bytes that the process has in memory."""
    status = Path(f"/proc/{gateway.process.real_pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("more", ["", "Authorization: Bearer tg_wrong\r\n", "Expect: 100-continue\r\n"])
def test_a_stranger_is_refused_before_the_body_is_read(gateway: Gateway, path: str, more: str) -> None:
    with connected(gateway) as line:
        line.sendall(head(path, 4_000_000, more))
        assert line.recv(65536).startswith(b"HTTP/1.1 401"), "of the body nothing was sent yet"


def test_a_strangers_body_is_dropped_and_the_connection_goes_on(gateway: Gateway) -> None:
    body = json.dumps([{"a": 1}] * 100_000).encode()
    with connected(gateway) as line:
        for _ in range(3):
            line.sendall(head("/agents/editor/mcp", len(body)) + body)
            answered = b""
            while b"unauthenticated" not in answered:
                answered += line.recv(65536)
            assert answered.startswith(b"HTTP/1.1 401")


def test_half_sent_bodies_of_strangers_take_no_memory(gateway: Gateway) -> None:
    before = resident(gateway)
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            line = stack.enter_context(connected(gateway))
            line.sendall(head("/agents/editor/mcp", 2 * HALF) + b"[" * HALF)
            assert line.recv(65536).startswith(b"HTTP/1.1 401")
        assert resident(gateway) - before < 30 * HALF
