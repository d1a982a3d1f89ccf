"""The HTTP edge by hand: headers exactly as written, and the hosts and origins that are not ours."""

import json
import socket
from typing import Any

from e2e.servers import Address
from waiting import DEADLINE

FOREIGN_HOSTS = [
    "evil.com",
    "127.0.0.1.evil.com",
    "localhost.evil.com",
    "evil.com:8000",
    "localhost@evil.com",
    "evil.com/localhost",
    "a/?x=",
    "x/health?",
    "127.0.0.1:99999999",
    "127.0.0.1:80:80",
    "127.0.0.1 evil.com",
    "localhost\tevil.com",
    "[::1",
    "[::1]evil.com",
    "0x7f.1",
    "2130706433",
    "127.1",
    "10.0.0.1",
    "0.0.0.0",
    "[::]",
    "ⓛocalhost",
    "",
]
FOREIGN_ORIGINS = [
    "http://evil.com",
    "https://evil.com:8000",
    "null",
    "http://127.0.0.1.evil.com",
    "http://localhost@evil.com",
    "http://evil.com/localhost",
    "http://evil.com#localhost",
    "file://",
    "chrome-extension://localhost",
    "localhost",
    "javascript://localhost",
    "http://localhost http://evil.com",
    "",
]


def raw(address: Address, method: str, path: str, body: Any, headers: list[tuple[str, str]]) -> tuple[int, str, str]:
    """Send exactly these headers; the status, the head and the body of the answer."""
    content = b"" if body is None else json.dumps(body).encode()
    head = "".join(f"{key}: {value}\r\n" for key, value in headers)
    request = f"{method} /{path} HTTP/1.1\r\n{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", address.port), timeout=DEADLINE) as connection:
        connection.sendall(request.encode("utf-8") + content)
        answer = b""
        while b"\r\n\r\n" not in answer and (part := connection.recv(65536)):
            answer += part
        while not answer.startswith(b"HTTP/1.1 200") and (part := connection.recv(65536)):
            answer += part
    start, _, rest = answer.decode("utf-8", "replace").partition("\r\n\r\n")
    return int(start.split()[1]), start, rest
