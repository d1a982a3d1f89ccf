"""THREATS A over a real gateway: which hosts, pages and kinds of body come in, on every address."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx2
import pytest

from e2e.edge import FOREIGN_HOSTS, FOREIGN_ORIGINS, raw
from e2e.wire import call_body, modern_headers
from waiting import DEADLINE
from web.gateway import Gateway, call, serving

ADD = {"parentNodeId": "root", "payloadType": "Note"}
CALL = call_body("add_child", ADD)
RUN = {"calls": [{"tool": "add_child", "arguments": ADD}]}
HEADERS = modern_headers("tools/call", "add_child")
ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "agents/editor/mcp", CALL),
    ("GET", "agents/editor/mcp", None),
    ("DELETE", "agents/editor/mcp", None),
    ("OPTIONS", "agents/editor/mcp", None),
    ("POST", "agents/editor/runs", RUN),
    ("OPTIONS", "agents/editor/runs", None),
    ("GET", "agents/editor/openai-tools", None),
    ("GET", "agents/editor/receipt", None),
    ("GET", "api/project", None),
    ("GET", "api/events", None),
    ("POST", "api/approvals/x", {"approve": True}),
    ("DELETE", "api/approvals/x", None),
    ("GET", "metrics", None),
    ("GET", "health", None),
    ("GET", "console", None),
    ("GET", "", None),
    ("GET", "no/such/route", None),
]
EVERY_ROUTE = pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{m} /{p}" for m, p, _ in ROUTES])


def with_token(gateway: Gateway) -> list[tuple[str, str]]:
    """All that a welcome request has, but the host: nothing else is a reason to refuse it."""
    return [*HEADERS.items(), *gateway.headers("operator").items()]


def changed(gateway: Gateway) -> bool:
    """Whether anybody ever changed the tree."""
    headers = gateway.headers("operator")
    records = httpx2.get(f"{gateway.base}/api/audit?tool=add_child", headers=headers, timeout=DEADLINE).json()
    return bool(records["items"])


@EVERY_ROUTE
def test_foreign_hosts_and_origins_are_refused_at_every_address(
    gateway: Gateway, method: str, path: str, body: Any
) -> None:
    address = gateway.address("editor")
    for host in FOREIGN_HOSTS:
        status, _, _ = raw(address, method, path, body, [("Host", host), *with_token(gateway)])
        assert status in (400, 421), (host, status)
    own = ("Host", f"127.0.0.1:{gateway.port}")
    for origin in FOREIGN_ORIGINS:
        status, head, text = raw(address, method, path, body, [own, ("Origin", origin), *with_token(gateway)])
        assert status == 403, (origin, status)
        assert "access-control-allow" not in head.lower()
        assert json.loads(text)["id"] is None
    assert not changed(gateway)


@EVERY_ROUTE
def test_exactly_one_host_is_required_and_forwarded_ones_are_ignored(
    gateway: Gateway, method: str, path: str, body: Any
) -> None:
    address, token = gateway.address("editor"), with_token(gateway)
    own = ("Host", f"127.0.0.1:{gateway.port}")
    forwarded = [("X-Forwarded-Host", "localhost"), ("Forwarded", "host=localhost"), ("X-Forwarded-For", "127.0.0.1")]
    assert raw(address, method, path, body, token)[0] == 400
    assert raw(address, method, path, body, [own, own, *token])[0] == 400
    assert raw(address, method, path, body, [own, ("Host", "evil.com"), *token])[0] == 400
    assert raw(address, method, path, body, [("Host", "evil.com"), *forwarded, *token])[0] == 421
    assert not changed(gateway)


def test_a_host_that_holds_an_open_path_opens_nothing(gateway: Gateway) -> None:
    for host in ("x/health?", "a/?x=", "127.0.0.1/health?", "localhost#/console"):
        status, _, text = raw(gateway.address("editor"), "GET", "api/project", None, [("Host", host)])
        assert status in (400, 421), host
        assert "agents" not in text


def test_preflights_are_granted_to_nobody(gateway: Gateway) -> None:
    asked = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization")]
    own = ("Host", f"127.0.0.1:{gateway.port}")
    for path in ("agents/editor/mcp", "agents/editor/runs", "api/approvals/x", "health", "console"):
        for origin in ("http://evil.com", f"http://127.0.0.1:{gateway.port}"):
            _, head, _ = raw(gateway.address("editor"), "OPTIONS", path, None, [own, ("Origin", origin), *asked])
            assert "access-control-allow" not in head.lower(), path


FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "a/b", "text/json"]
WRITES: list[tuple[str, Any]] = [
    ("agents/editor/mcp", CALL),
    ("agents/editor/runs", RUN),
    ("api/approvals/x", {"approve": True}),
    ("api/pins/server/tool", {"accept": "x"}),
]


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(("path", "body"), WRITES, ids=[path for path, _ in WRITES])
def test_a_body_that_a_form_could_send_runs_nothing(gateway: Gateway, path: str, body: Any, kind: str) -> None:
    headers = HEADERS | gateway.headers("operator") | {"Content-Type": kind}
    refused = httpx2.post(f"{gateway.base}/{path}", content=json.dumps(body), headers=headers, timeout=DEADLINE)
    assert refused.status_code in (400, 415), refused.text
    bare = {key: value for key, value in headers.items() if key != "Content-Type"}
    refused = httpx2.post(f"{gateway.base}/{path}", content=json.dumps(body), headers=bare, timeout=DEADLINE)
    assert refused.status_code in (400, 415), refused.text
    assert not changed(gateway)


@pytest.mark.anyio
async def test_without_tokens_a_foreign_page_still_reaches_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(
        tmp_path_factory.mktemp("open"), {"agents": {"a": {"tools": ["get_node"]}}}, "--no-tokens-on-loopback"
    ) as open_:
        assert open_.tokens == {}
        assert "token" not in open_.console
        async with open_.http() as http:
            assert (await call(http, "a", "get_node", {"nodeId": "root"}))["nodeId"] == "root"
            assert (await http.get("/api/project")).status_code == 200
            assert (await http.get("/metrics")).status_code == 200
            assert (await http.get("/api/project", headers={"Origin": "http://evil.com"})).status_code == 403
            assert (await http.get("/api/project", headers={"Host": "evil.com"})).status_code == 421
            run = json.dumps({"calls": [{"tool": "get_node", "arguments": {"nodeId": "root"}}]})
            for kind in FORMS:
                refused = await http.post("/agents/a/runs", content=run, headers={"Content-Type": kind})
                assert refused.status_code == 415, kind


def test_websocket_upgrades_are_refused(gateway: Gateway) -> None:
    upgrade = [
        ("Host", f"127.0.0.1:{gateway.port}"),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
        *gateway.headers("operator").items(),
    ]
    for path in ("agents/editor/mcp", "health", "console", "api/events", "ws"):
        content = "".join(f"{key}: {value}\r\n" for key, value in upgrade)
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=DEADLINE) as connection:
            connection.sendall(f"GET /{path} HTTP/1.1\r\n{content}\r\n".encode())
            assert not connection.recv(1024).startswith(b"HTTP/1.1 101"), path


def test_the_consoles_page_carries_a_strict_policy_and_no_secret(gateway: Gateway) -> None:
    for path in ("console", "console/"):
        page = httpx2.get(f"{gateway.base}/{path}", timeout=DEADLINE)
        policy = page.headers["content-security-policy"]
        assert page.status_code == 200
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "'sha256-" in policy
        assert "unsafe-eval" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert not [token for token in gateway.tokens.values() if token in page.text]
    home = httpx2.get(f"{gateway.base}/", timeout=DEADLINE, follow_redirects=False)
    assert (home.status_code, home.headers["location"]) == (307, "/console")


def test_answers_are_kept_by_no_cache_and_read_as_what_they_are(gateway: Gateway) -> None:
    for path in ("health", "api/project", "agents/editor/receipt", "agents/editor/openai-tools", "metrics"):
        answer = httpx2.get(f"{gateway.base}/{path}", headers=gateway.headers("operator"), timeout=DEADLINE)
        assert answer.status_code == 200, path
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_the_operator_can_allow_further_names(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("named"), {}, "--allowed-host", "tools.example") as named:
        address = named.address("editor")
        assert raw(address, "GET", "health", None, [("Host", "tools.example")])[0] == 200
        assert raw(address, "GET", "health", None, [("Host", "x.tools.example")])[0] == 421


def test_the_refusal_of_a_host_says_what_to_do(gateway: Gateway) -> None:
    status, _, text = raw(gateway.address("editor"), "GET", "health", None, [("Host", "tools.example")])
    assert status == 421
    assert "allowed_hosts" in json.loads(text)["error"]["message"]


def test_addresses_are_exact(gateway: Gateway) -> None:
    headers = HEADERS | gateway.headers("operator")
    for path in ("agents/editor/mcp/", "agents//editor/mcp", "agents/EDITOR/mcp", "agents/editor/MCP", "mcp", "agents"):
        answer = httpx2.post(f"{gateway.base}/{path}", json=CALL, headers=headers, timeout=DEADLINE)
        assert answer.status_code == 404, path
    for path in ("agents/..%2feditor/mcp", "agents/%65ditor%00/mcp", "agents/%2e/mcp"):
        answer = httpx2.post(f"{gateway.base}/{path}", json=CALL, headers=headers, timeout=DEADLINE)
        assert answer.status_code in (400, 404), path
    assert not changed(gateway)
