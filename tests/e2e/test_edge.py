"""The HTTP edge: which hosts and pages may talk to the server, on every route."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from apcore import Registry
from mcp import Client

from apcore_mcp import async_serve
from e2e.edge import FOREIGN_HOSTS, FOREIGN_ORIGINS, raw
from e2e.modules import Journal
from e2e.servers import Address, serving
from e2e.wire import MODERN, call_body, modern_headers
from ports import free_port
from waiting import DEADLINE

CALL = call_body("secret.vault")
HEADERS = modern_headers("tools/call", "secret.vault")


@pytest.fixture(scope="module")
def sse(shared_samples: Registry) -> Iterator[Address]:
    with serving(shared_samples, transport="sse", explorer=True, allow_execute=True) as address:
        yield address


ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "mcp", CALL),
    ("GET", "mcp", None),
    ("DELETE", "mcp", None),
    ("OPTIONS", "mcp", None),
    ("GET", "explorer/", None),
    ("GET", "explorer", None),
    ("GET", "explorer/info", None),
    ("GET", "explorer/tools", None),
    ("GET", "explorer/tools/math.add", None),
    ("POST", "explorer/tools/secret.vault/call", {}),
    ("GET", "no/such/route", None),
]
SSE_ROUTES: list[tuple[str, str, Any]] = [("GET", "sse", None), ("POST", "messages/", CALL)]

STANDARD = list(HEADERS.items())


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{m} {p}" for m, p, _ in ROUTES])
@pytest.mark.requirement("NFR-SEC-001", "FR-TRANSPORT-003")
def test_foreign_hosts_and_origins_are_refused_on_every_route(
    http: Address, shared_journal: Journal, method: str, path: str, body: Any
) -> None:
    for host in FOREIGN_HOSTS:
        status, _, _ = raw(http, method, path, body, [("Host", host), *STANDARD])
        assert status in (400, 421), (host, status)
    own = f"127.0.0.1:{http.port}"
    for origin in FOREIGN_ORIGINS:
        status, head, text = raw(http, method, path, body, [("Host", own), ("Origin", origin), *STANDARD])
        assert status == 403, (origin, status)
        assert "access-control-allow" not in head.lower()
        assert json.loads(text)["id"] is None
    assert "vault opened" not in shared_journal


@pytest.mark.parametrize(("method", "path", "body"), SSE_ROUTES, ids=[f"{m} {p}" for m, p, _ in SSE_ROUTES])
@pytest.mark.requirement("FR-SERVER-003", "FR-TRANSPORT-004")
def test_foreign_hosts_and_origins_are_refused_on_the_old_transport(
    sse: Address, method: str, path: str, body: Any
) -> None:
    for host in FOREIGN_HOSTS[:6]:
        assert raw(sse, method, path, body, [("Host", host), *STANDARD])[0] in (400, 421), host
    own = f"127.0.0.1:{sse.port}"
    for origin in FOREIGN_ORIGINS[:4]:
        assert raw(sse, method, path, body, [("Host", own), ("Origin", origin), *STANDARD])[0] == 403, origin


@pytest.mark.requirement("NFR-SEC-001")
def test_exactly_one_host_header_is_required_and_forwarded_ones_are_ignored(
    http: Address, shared_journal: Journal
) -> None:
    own = ("Host", f"127.0.0.1:{http.port}")
    assert raw(http, "POST", "mcp", CALL, STANDARD)[0] == 400
    assert raw(http, "POST", "mcp", CALL, [own, own, *STANDARD])[0] == 400
    assert raw(http, "POST", "mcp", CALL, [own, ("Host", "evil.com"), *STANDARD])[0] == 400
    forwarded = [("X-Forwarded-Host", "localhost"), ("Forwarded", "host=localhost"), ("X-Forwarded-For", "127.0.0.1")]
    assert raw(http, "POST", "mcp", CALL, [("Host", "evil.com"), *forwarded, *STANDARD])[0] in (400, 421)
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-TRANSPORT-003")
def test_loopback_names_and_same_origin_pages_are_welcome(http: Address) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.0.0.53", "localhost."):
        assert raw(http, "GET", "elsewhere", None, [("Host", f"{host}:{http.port}")])[0] == 404, host
        assert raw(http, "GET", "elsewhere", None, [("Host", host)])[0] == 404, host
        origin = ("Origin", f"http://{host}:{http.port}")
        assert raw(http, "GET", "elsewhere", None, [("Host", f"{host}:{http.port}"), origin])[0] == 404, host


@pytest.mark.requirement("FR-SERVER-002", "FR-TRANSPORT-003")
def test_every_interface_works_out_of_the_box_and_rebinding_does_not(samples: Registry) -> None:
    with serving(samples, host="0.0.0.0") as address:
        name = socket.gethostname()
        for host in ("127.0.0.1", "localhost", "10.1.2.3", "[2001:db8::1]", "192.168.0.7", name, name.upper()):
            assert raw(address, "GET", "elsewhere", None, [("Host", f"{host}:{address.port}")])[0] == 404, host
        for host in ("evil.com", "127.0.0.1.evil.com", "10.1.2.3.evil.com", f"{name}.evil.com", "example"):
            assert raw(address, "GET", "elsewhere", None, [("Host", host)])[0] == 421, host
        own = ("Host", f"10.1.2.3:{address.port}")
        assert raw(address, "GET", "elsewhere", None, [own, ("Origin", "http://evil.com")])[0] == 403
        assert raw(address, "GET", "elsewhere", None, [own, ("Origin", f"http://10.1.2.3:{address.port}")])[0] == 404


@pytest.mark.requirement("FR-SERVER-002")
def test_the_operator_can_allow_further_names(samples: Registry) -> None:
    with serving(samples, allowed_hosts=["tools.example", "other.example"]) as address:
        for host in ("tools.example", "Tools.Example:8443", "other.example"):
            assert raw(address, "GET", "elsewhere", None, [("Host", host)])[0] == 404, host
            origin = ("Origin", f"https://{host}")
            assert raw(address, "GET", "elsewhere", None, [("Host", host), origin])[0] == 404, host
        for host in ("x.tools.example", "tools.example.evil.com", "evil.com"):
            assert raw(address, "GET", "elsewhere", None, [("Host", host)])[0] == 421, host


@pytest.mark.requirement("FR-SERVER-002")
def test_the_refusal_tells_the_operator_what_to_do(http: Address) -> None:
    status, _, text = raw(http, "GET", "elsewhere", None, [("Host", "tools.example")])
    assert status == 421
    assert "allowed_hosts" in json.loads(text)["error"]["message"]


@pytest.mark.requirement("FR-HEALTH-001", "FR-HEALTH-002")
def test_health_answers_whoever_asks_by_whatever_name(http: Address, sse: Address) -> None:
    for address in (http, sse):
        for host in FOREIGN_HOSTS:
            assert raw(address, "GET", "health", None, [("Host", host)])[0] == 200, host
        for origin in FOREIGN_ORIGINS:
            status, head, _ = raw(address, "GET", "health", None, [("Host", "bridge:8000"), ("Origin", origin)])
            assert status == 200, origin
            assert "access-control-allow" not in head.lower()
        with socket.create_connection(("127.0.0.1", address.port), timeout=DEADLINE) as connection:
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert connection.recv(1024).split()[1] == b"200"


@pytest.mark.anyio
@pytest.mark.requirement("FR-SERVER-002", "FR-TRANSPORT-003")
async def test_ipv6_loopback_can_be_bound(samples: Registry) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    port = free_port("::1")
    task = asyncio.create_task(async_serve(samples, transport="streamable-http", host="::1", port=port))
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    async with Client(f"http://[::1]:{port}/mcp", mode=MODERN) as client:
                        result = await client.call_tool("math.add", {"a": 1, "b": 2})
                    break
                except BaseException:
                    if task.done():
                        task.result()
                    await asyncio.sleep(0.02)
        assert result.structured_content == {"sum": 3}
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.requirement("FR-EXPLORER-004")
def test_a_preflight_from_another_page_is_not_granted(http: Address) -> None:
    asked = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type")]
    own = ("Host", f"127.0.0.1:{http.port}")
    for path in ("mcp", "explorer/tools/math.add/call", "health"):
        for origin in ("http://evil.com", f"http://127.0.0.1:{http.port}"):
            _, head, _ = raw(http, "OPTIONS", path, None, [own, ("Origin", origin), *asked])
            assert "access-control-allow" not in head.lower()


@pytest.mark.requirement("FR-TRANSPORT-003")
def test_websocket_upgrades_are_refused(http: Address) -> None:
    upgrade = [
        ("Host", f"127.0.0.1:{http.port}"),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ]
    for path in ("mcp", "health", "explorer/", "ws"):
        content = "".join(f"{key}: {value}\r\n" for key, value in upgrade)
        with socket.create_connection(("127.0.0.1", http.port), timeout=DEADLINE) as connection:
            connection.sendall(f"GET /{path} HTTP/1.1\r\n{content}\r\n".encode())
            assert not connection.recv(1024).startswith(b"HTTP/1.1 101"), path
    assert httpx2.get(http / "health").status_code == 200


@pytest.mark.requirement("FR-EXPLORER-001", "FR-EXPLORER-005")
def test_the_explorer_page_carries_a_strict_policy(http: Address) -> None:
    page = httpx2.get(http / "explorer/")
    policy = page.headers["content-security-policy"]
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "'sha256-" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("target", ["http://evil.com/health", "http://127.0.0.1/health", "evil.com:80", "*", "health"])
def test_a_target_that_names_a_host_of_its_own_is_refused(http: Address, target: str) -> None:
    with socket.create_connection(("127.0.0.1", http.port), DEADLINE) as line:
        line.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{http.port}\r\n\r\n".encode())
        assert line.recv(65536).startswith(b"HTTP/1.1 400")
        assert line.recv(1) == b""


@pytest.mark.parametrize(("host", "loud"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_bridge_that_others_can_reach_says_so_loudly(
    samples: Registry, caplog: pytest.LogCaptureFixture, host: str, loud: bool
) -> None:
    with serving(samples, host=host):
        pass
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any("ANYBODY WHO REACHES 0.0.0.0 CAN CALL EVERY TOOL" in text for text in warned) is loud, warned
