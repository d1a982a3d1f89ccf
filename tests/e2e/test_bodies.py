"""Bodies that are too large, too deep, ambiguous, slow, or not JSON-RPC at all."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from apcore import Registry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e.modules import Journal
from e2e.servers import Address, serving
from e2e.wire import HANDSHAKE, JSON_OR_STREAM, MODERN, NO_IDS, call_body, envelope, modern_body, modern_headers
from waiting import DEADLINE

VAULT = modern_headers("tools/call", "secret.vault")


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=DEADLINE) as opened:
        yield opened


def refused(response: httpx2.Response, *statuses: int) -> Any:
    """The error of an answer that must be a JSON-RPC or plain HTTP error."""
    assert response.status_code in statuses, (response.status_code, response.text[:300])
    return response.json()["error"] if response.headers["content-type"].startswith("application/json") else None


DEEP = b"[" * 100_000 + b"]" * 100_000
DEEP_CALL = json.dumps(call_body("secret.vault", {"x": "DEEP"})).encode().replace(b'"DEEP"', DEEP)
AMBIGUOUS = json.dumps(call_body("math.add", {"a": 1, "b": 1})).encode()
NOT_JSON = {
    "empty": b"",
    "text": b"hello",
    "cut off": b'{"jsonrpc": "2.0", "id": 1',
    "two texts": b"{}{}",
    "deep": DEEP,
    "deep arguments": DEEP_CALL,
    "NaN": json.dumps(call_body("secret.vault", {"x": float("nan")})).encode(),
    "Infinity": json.dumps(call_body("secret.vault", {"x": float("inf")})).encode(),
    "not UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
    "name twice": AMBIGUOUS.replace(b'"name": "math.add"', b'"name": "math.add", "name": "secret.vault"'),
    "method twice": AMBIGUOUS.replace(b'"id": 1', b'"id": 1, "id": 2'),
    "escaped name twice": AMBIGUOUS.replace(b'"name": "math.add"', b'"name": "math.add", "n\\u0061me": "secret.vault"'),
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
@pytest.mark.requirement("FR-SERVER-002")
def test_a_body_that_is_not_one_clear_json_text_is_a_parse_error(
    http: Address, client: httpx2.Client, shared_journal: Journal, body: bytes
) -> None:
    for headers in (VAULT, JSON_OR_STREAM):
        error = refused(client.post(http.mcp, content=body, headers=headers), 400)
        assert error["code"] == -32700
    call = client.post(
        http / "explorer/tools/secret.vault/call", content=body, headers={"Content-Type": "application/json"}
    )
    assert call.status_code == 400
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-SERVER-002")
def test_a_body_over_the_limit_is_refused_before_it_is_read(http: Address, client: httpx2.Client) -> None:
    big = json.dumps(call_body("text.shout", {"text": "x" * 5_000_000}))
    assert client.post(http.mcp, content=big, headers=modern_headers("tools/call", "text.shout")).status_code == 413
    assert client.post(http / "explorer/tools/text.shout/call", json={"text": "x" * 5_000_000}).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(80):
            yield b" " * 65_536

    try:
        streamed = client.post(http.mcp, content=chunks(), headers=JSON_OR_STREAM).status_code
    except httpx2.WriteError:  # closed on us before we were done
        streamed = 413
    assert streamed == 413
    with socket.create_connection(("127.0.0.1", http.port), timeout=DEADLINE) as lying:
        lying.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert lying.recv(1024).startswith(b"HTTP/1.1 413")
    assert client.get(http / "health").status_code == 200


@pytest.mark.requirement("FR-SERVER-002", "FR-EXEC-002")
def test_a_large_but_legal_body_passes(http: Address, client: httpx2.Client) -> None:
    body = call_body("text.shout", {"text": "x" * 1_000_000})
    response = client.post(http.mcp, json=body, headers=modern_headers("tools/call", "text.shout"))
    assert response.json()["result"]["structuredContent"] == {"text": "X" * 1_000_000}


@pytest.mark.requirement("FR-SERVER-002")
def test_batches_and_other_json_are_invalid_requests(
    http: Address, client: httpx2.Client, shared_journal: Journal
) -> None:
    one = call_body("secret.vault")
    for body in ([one], [one, one], [], "text", 5, None, True, {}, {"jsonrpc": "2.0"}, {"id": 1}):
        for headers in (VAULT, JSON_OR_STREAM):
            error = refused(client.post(http.mcp, json=body, headers=headers), 400)
            assert error["code"] in (-32600, -32602, -32700), body
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-SERVER-002", "FR-EXPLORER-004")
def test_other_content_types_run_nothing(http: Address, client: httpx2.Client, shared_journal: Journal) -> None:
    for content_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "a/b",
    ):
        headers = VAULT | {"Content-Type": content_type}
        response = client.post(http.mcp, content=json.dumps(call_body("secret.vault")), headers=headers)
        assert response.status_code in (400, 415), content_type
        explored = client.post(
            http / "explorer/tools/secret.vault/call", content=b"{}", headers={"Content-Type": content_type}
        )
        assert explored.status_code == 415, content_type
    assert "vault opened" not in shared_journal


def post(client: httpx2.Client, address: Address, body: Any, headers: list[tuple[str, str]] | dict[str, str]) -> Any:
    return client.post(address.mcp, json=body, headers=headers)


@pytest.mark.requirement("FR-SERVER-002")
def test_headers_that_contradict_the_body_are_refused(
    http: Address, client: httpx2.Client, shared_journal: Journal
) -> None:
    vault = call_body("secret.vault")
    without_name = {key: value for key, value in VAULT.items() if key != "Mcp-Name"}
    without_method = {key: value for key, value in VAULT.items() if key != "Mcp-Method"}
    for headers in (
        VAULT | {"Mcp-Name": "math.add"},
        VAULT | {"Mcp-Method": "tools/list"},
        without_name,
        without_method,
    ):
        assert refused(post(client, http, vault, headers), 400)["code"] == -32020, headers
    twice = [*VAULT.items(), ("Mcp-Name", "math.add")]
    assert post(client, http, vault, twice).status_code == 400
    assert post(client, http, vault, [*VAULT.items(), ("Mcp-Name", "secret.vault")]).status_code == 400
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-SERVER-002")
def test_protocol_versions_must_agree_and_be_known(
    http: Address, client: httpx2.Client, shared_journal: Journal
) -> None:
    version = "io.modelcontextprotocol/protocolVersion"
    other = call_body("secret.vault", _meta={version: "2025-11-25"})
    assert refused(post(client, http, other, VAULT), 400)["code"] == -32020
    unknown = call_body("secret.vault", _meta={version: "2099-01-01"})
    error = refused(post(client, http, unknown, VAULT | {"MCP-Protocol-Version": "2099-01-01"}), 400)
    assert error["code"] == -32022
    assert MODERN in error["data"]["supported"]
    for missing in (version, "io.modelcontextprotocol/clientCapabilities"):
        meta = {key: value for key, value in envelope().items() if key != missing}
        body = modern_body("tools/call")
        body["params"] = {"name": "secret.vault", "arguments": {}, "_meta": meta}
        assert refused(post(client, http, body, VAULT), 400)["code"] in (-32602, -32020), missing
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-SERVER-002")
def test_request_ids_must_be_strings_or_integers(http: Address, client: httpx2.Client, shared_journal: Journal) -> None:
    for odd in NO_IDS:
        body = call_body("secret.vault") | {"id": odd}
        response = post(client, http, body, VAULT)
        assert response.status_code == 400, odd
    for id in ("x" * 100_000, "", 0, -1, 2**53):
        answer = post(
            client, http, call_body("math.add", {"a": 1, "b": 1}, id), modern_headers("tools/call", "math.add")
        )
        assert answer.status_code in (200, 400), id
        assert answer.status_code == 400 or answer.json()["id"] == id
    assert "vault opened" not in shared_journal


@pytest.mark.requirement("FR-EXEC-001", "FR-EXEC-002")
def test_odd_arguments_are_answered_with_an_error_and_never_echoed_as_bad_json(
    http: Address, client: httpx2.Client
) -> None:
    headers = modern_headers("tools/call", "text.shout")
    for raw in (b'"\\ud800"', b"1e400", b"-1e400", b"1" + b"0" * 5000, b"[[[[[[1]]]]]]", b"null", b"true"):
        body = json.dumps(call_body("text.shout", {"text": "MARK"})).encode().replace(b'"MARK"', raw)
        response = client.post(http.mcp, content=body, headers=headers)
        assert response.status_code in (200, 400), raw
        answer = json.loads(response.content.decode("utf-8"), parse_constant=pytest.fail)
        assert "error" in answer or answer["result"]["isError"], raw
    for arguments in ([], "text", 5, True, [1, 2]):
        message = call_body("text.shout")
        message["params"]["arguments"] = arguments
        answer = client.post(http.mcp, json=message, headers=headers).json()
        assert "error" in answer or answer["result"]["isError"], arguments
    absent = call_body("give.nothing")
    del absent["params"]["arguments"]
    answer = client.post(http.mcp, json=absent, headers=modern_headers("tools/call", "give.nothing")).json()
    assert answer["result"]["isError"] is False


@pytest.mark.requirement("FR-TRANSPORT-003")
def test_a_slow_client_is_cut_off_and_disturbs_nobody(monkeypatch: pytest.MonkeyPatch, samples: Registry) -> None:
    monkeypatch.setattr("mcp_serve.uvicorn_internals.HEAD_WITHIN", 0.5)
    monkeypatch.setattr("mcp_serve.uvicorn_internals.BODY_WITHIN", 0.5)
    with serving(samples) as address, httpx2.Client(timeout=DEADLINE) as client:
        start = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"
        slow = {
            "nothing": b"",
            "half a head": start,
            "no body": start + b"\r\n",
            "half a body": start + b'\r\n{"jsonrpc":',
        }
        connections = {name: socket.create_connection(("127.0.0.1", address.port), DEADLINE) for name in slow}
        try:
            for name, data in slow.items():
                connections[name].sendall(data)
            dripping = socket.create_connection(("127.0.0.1", address.port), DEADLINE)
            connections["a byte at a time"] = dripping
            begun = time.monotonic()
            with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe, at some byte
                while time.monotonic() - begun < DEADLINE:
                    dripping.sendall(b"G")
                    body = call_body("math.add", {"a": 1, "b": 1})
                    answer = client.post(address.mcp, json=body, headers=modern_headers("tools/call", "math.add"))
                    assert answer.status_code == 200
                    time.sleep(0.01)  # the pace of the attack, not a wait
            for name, connection in connections.items():
                connection.settimeout(DEADLINE)
                try:
                    rest = connection.recv(4096)
                except ConnectionResetError:
                    rest = b""
                assert not rest.startswith(b"HTTP/1.1 200"), name
        finally:
            for connection in connections.values():
                connection.close()
        # A patient client with a kept connection is not a slow one.
        assert client.get(address / "health").status_code == 200


@pytest.mark.requirement("FR-TRANSPORT-003")
def test_a_client_that_pauses_between_requests_keeps_its_connection_or_reconnects(
    monkeypatch: pytest.MonkeyPatch, samples: Registry, journal: Journal
) -> None:
    monkeypatch.setattr("mcp_serve.uvicorn_internals.HEAD_WITHIN", 0.2)
    monkeypatch.setattr("mcp_serve.uvicorn_internals.BODY_WITHIN", 0.2)
    with serving(samples) as address, httpx2.Client(timeout=DEADLINE) as client:
        body = call_body("work.nap", {"key": "k", "seconds": 0.6})
        answer = client.post(address.mcp, json=body, headers=modern_headers("tools/call", "work.nap"))
        assert answer.status_code == 200, "a slow module is not a slow client"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", None]),
        "id": JSON,
        "method": st.sampled_from(["tools/call", "tools/list", "initialize", "resources/read", "ping", ""])
        | st.text(max_size=8),
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["math.add", "text.shout", "no.such"]) | JSON,
                "arguments": JSON,
                "uri": JSON,
                "requestState": JSON,
                "inputResponses": JSON,
                "_meta": st.just(envelope()) | JSON,
            },
        )
        | JSON,
    },
)
BODIES = (
    st.binary(max_size=200)
    | JSON.map(lambda v: json.dumps(v).encode())
    | REQUESTS.map(lambda v: json.dumps(v).encode())
)
FUZZED_HEADERS = st.sampled_from(
    [
        JSON_OR_STREAM,
        JSON_OR_STREAM | {"MCP-Protocol-Version": HANDSHAKE},
        JSON_OR_STREAM | {"MCP-Protocol-Version": MODERN},
        modern_headers("tools/call", "math.add"),
        modern_headers("tools/list"),
        modern_headers("initialize"),
        VAULT | {"Mcp-Session-Id": "forged"},
    ]
)


@pytest.mark.requirement("FR-SERVER-002", "FR-EXEC-007")
def test_whatever_bytes_arrive_the_answer_is_well_formed_and_the_server_lives(
    http: Address, client: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(body=BODIES, headers=FUZZED_HEADERS)
    def attack(body: bytes, headers: dict[str, str]) -> None:
        response = client.post(http.mcp, content=body, headers=headers)
        assert response.status_code < 500, (response.status_code, response.text)
        content_type = response.headers.get("content-type", "")
        if content_type.startswith("application/json"):
            answer = json.loads(response.content, parse_constant=pytest.fail)
            assert answer["jsonrpc"] == "2.0"
            assert "result" in answer or isinstance(answer["error"]["code"], int)
        elif response.status_code < 400:
            assert content_type.startswith("text/event-stream") or response.content == b""

    attack()
    assert client.get(http / "health").status_code == 200
    assert "Traceback" not in caplog.text
