"""THREATS B over a real gateway: what can be read in two ways, too deep, too slow or in another's name runs nothing."""

from __future__ import annotations

import json
import socket
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.wire import (
    HANDSHAKE,
    JSON_OR_STREAM,
    MODERN,
    NO_IDS,
    Handshake,
    call_body,
    envelope,
    messages,
    modern_body,
    modern_headers,
)
from mcp_text import told_on_wire
from waiting import DEADLINE
from web.gateway import Gateway, call, events

ADD = {"parentNodeId": "root", "payloadType": "Note"}
HEADERS = modern_headers("tools/call", "add_child")
BODY = json.dumps(call_body("add_child", ADD)).encode()
RUN = json.dumps({"calls": [{"tool": "add_child", "arguments": ADD}]}).encode()


def post(gateway: Gateway, content: Any, headers: Any, path: str = "agents/editor/mcp") -> httpx2.Response:
    pairs = [*dict(headers).items()] if isinstance(headers, dict) else list(headers)
    token = list(gateway.headers("editor").items())
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return httpx2.post(f"{gateway.base}/{path}", content=content, headers=[*pairs, *token], timeout=DEADLINE)


def untouched(gateway: Gateway) -> bool:
    """Whether no call ever reached the gate."""
    headers = gateway.headers("operator")
    query = f"{gateway.base}/api/audit?tool=add_child"
    items: list[Any] = httpx2.get(query, headers=headers, timeout=DEADLINE).json()["items"]
    return items == []


DEEP = b"[" * 100_000 + b"]" * 100_000
UNREADABLE = {
    "empty": b"",
    "text": b"hello",
    "cut off": BODY[:-5],
    "two texts": BODY + BODY,
    "deep": DEEP,
    "deep arguments": BODY.replace(b'"Note"', DEEP),
    "NaN": BODY.replace(b'"Note"', b"NaN"),
    "Infinity": BODY.replace(b'"Note"', b"-Infinity"),
    "a million digits": BODY.replace(b'"Note"', b"1" * 1_000_000),
    "not UTF-8": BODY.replace(b"Note", b"\xff\xfe"),
    "name twice": BODY.replace(b'"name": "add_child"', b'"name": "get_node", "name": "add_child"'),
    "escaped name twice": BODY.replace(b'"name": "add_child"', b'"name": "get_node", "n\\u0061me": "add_child"'),
    "argument twice": BODY.replace(b'"Note"', b'"Note", "payloadType": "Root"'),
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_body_that_is_not_one_clear_json_text_is_a_parse_error(gateway: Gateway, body: bytes) -> None:
    for headers in (HEADERS, JSON_OR_STREAM):
        refused = post(gateway, body, headers)
        assert refused.status_code == 400, refused.text[:300]
        assert refused.json()["error"]["code"] == -32700
    for path in ("agents/editor/runs", "api/approvals/x"):
        assert post(gateway, body, {"Content-Type": "application/json"}, path).status_code in (400, 403)
    assert untouched(gateway)


TWICE = UNREADABLE["name twice"]
RUN_TWICE = RUN.replace(b'"Note"', b'"Note", "payloadType": "Root"')
SPELLINGS = {
    "upper case": [("Content-Type", "Application/JSON")],
    "two kinds": [("Content-Type", "application/json"), ("Content-Type", "text/plain")],
    "with a parameter": [("Content-Type", "application/json; charset=utf-8")],
}


@pytest.mark.parametrize("kind", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_no_spelling_of_the_content_type_leads_around_the_check(gateway: Gateway, kind: list[tuple[str, str]]) -> None:
    rest = [(key, value) for key, value in HEADERS.items() if key != "Content-Type"]
    assert post(gateway, TWICE, [*rest, *kind]).status_code in (400, 415)
    assert post(gateway, RUN_TWICE, kind, "agents/editor/runs").status_code in (400, 415)
    assert post(gateway, RUN.replace(b'"Note"', b"NaN"), kind, "agents/editor/runs").status_code in (400, 415)
    assert untouched(gateway)


def test_batches_and_other_json_are_invalid_requests(gateway: Gateway) -> None:
    one = call_body("add_child", ADD)
    for body in ([one], [one, one], [], "text", 5, None, True, {}, {"jsonrpc": "2.0"}, {"id": 1}):
        for headers in (HEADERS, JSON_OR_STREAM):
            refused = post(gateway, body, headers)
            assert refused.status_code == 400, body
            assert refused.json()["error"]["code"] in (-32600, -32602, -32700), body
    runs: list[Any] = ["text", 5, None, {}, {"calls": {}}, {"calls": "x"}, {"calls": [{}] * 101}]
    for run in runs:
        refused = post(gateway, run, {"Content-Type": "application/json"}, "agents/editor/runs")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_argument"), run
    assert untouched(gateway)


def test_headers_that_contradict_the_body_are_refused(gateway: Gateway) -> None:
    without_name = {key: value for key, value in HEADERS.items() if key != "Mcp-Name"}
    without_method = {key: value for key, value in HEADERS.items() if key != "Mcp-Method"}
    for headers in (
        HEADERS | {"Mcp-Name": "get_node"},
        HEADERS | {"Mcp-Method": "tools/list"},
        without_name,
        without_method,
    ):
        refused = post(gateway, BODY, headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020), headers
    for second in ("get_node", "add_child"):
        assert post(gateway, BODY, [*HEADERS.items(), ("Mcp-Name", second)]).status_code == 400
    assert untouched(gateway)


def test_the_policy_looks_at_the_body_and_not_at_the_headers(gateway: Gateway) -> None:
    body = json.dumps(call_body("add_child", ADD)).encode()
    headers = {**modern_headers("tools/call", "get_node"), **gateway.headers("researcher")}
    refused = httpx2.post(f"{gateway.base}/agents/researcher/mcp", content=body, headers=headers, timeout=DEADLINE)
    assert refused.json()["error"]["code"] == -32020
    assert untouched(gateway)


def test_protocol_versions_must_agree_and_be_known(gateway: Gateway) -> None:
    version = "io.modelcontextprotocol/protocolVersion"
    other = post(gateway, call_body("add_child", ADD, _meta={version: HANDSHAKE}), HEADERS)
    assert (other.status_code, other.json()["error"]["code"]) == (400, -32020)
    unknown = call_body("add_child", ADD, _meta={version: "2099-01-01"})
    refused = post(gateway, unknown, HEADERS | {"MCP-Protocol-Version": "2099-01-01"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32022)
    assert MODERN in refused.json()["error"]["data"]["supported"]
    for missing in (version, "io.modelcontextprotocol/clientCapabilities"):
        body = modern_body("tools/call")
        meta = {key: value for key, value in envelope().items() if key != missing}
        body["params"] = {"name": "add_child", "arguments": ADD, "_meta": meta}
        refused = post(gateway, body, HEADERS)
        assert (refused.status_code, refused.json()["error"]["code"] in (-32602, -32020)) == (400, True), missing
    assert untouched(gateway)


def test_request_ids_must_be_strings_or_integers(gateway: Gateway) -> None:
    for odd in NO_IDS:
        assert post(gateway, call_body("add_child", ADD) | {"id": odd}, HEADERS).status_code == 400, odd
    look = modern_headers("tools/call", "get_node")
    for id in ("x" * 100_000, "", 0, -1, 2**53):
        answer = post(gateway, call_body("get_node", {"nodeId": "root"}, id), look)
        assert answer.status_code in (200, 400), id
        assert answer.status_code == 400 or answer.json()["id"] == id
    assert untouched(gateway)


ODD = {
    "lone surrogate": b'"\\ud800"',
    "1e400": b"1e400",
    "large": b"1" + b"0" * 4000,
    "nested": b"[" * 300 + b"]" * 300,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_odd_values_are_answered_with_an_error_that_is_json(gateway: Gateway, odd: bytes) -> None:
    body = json.dumps(call_body("get_node", {"nodeId": "MARK"})).encode().replace(b'"MARK"', odd)
    answer = post(gateway, body, modern_headers("tools/call", "get_node"))
    assert answer.status_code in (200, 400)
    form = json.loads(answer.content.decode("utf-8"), parse_constant=pytest.fail)
    assert "error" in form or form["result"]["isError"]
    run = json.dumps({"calls": [{"tool": "get_node", "arguments": {"nodeId": "MARK"}}]}).encode()
    streamed = post(gateway, run.replace(b'"MARK"', odd), {"Content-Type": "application/json"}, "agents/editor/runs")
    assert streamed.status_code in (200, 400)
    if streamed.status_code == 200:
        assert [event["type"] for event in events(streamed.text)][-1] == "run_finished"
        json.loads(
            streamed.content.decode("utf-8").partition("data: ")[2].partition("\n")[0], parse_constant=pytest.fail
        )


@pytest.mark.anyio
async def test_bodies_over_the_limit_are_refused_before_they_are_read(gateway: Gateway) -> None:
    big = call_body("get_node", {"nodeId": "x" * 5_000_000})
    assert post(gateway, big, modern_headers("tools/call", "get_node")).status_code == 413
    assert post(gateway, big, {"Content-Type": "application/json"}, "agents/editor/runs").status_code == 413
    token = gateway.headers("editor")["Authorization"]
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=DEADLINE) as lying:
        head = f"POST /agents/editor/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
        lying.sendall(f"{head}Content-Length: 99999999999\r\n\r\n".encode())
        assert lying.recv(1024).startswith(b"HTTP/1.1 413")


@pytest.mark.anyio
async def test_twenty_calls_under_the_same_request_id_get_their_own_answers(gateway: Gateway) -> None:
    answers: dict[int, Any] = {}
    async with gateway.http("editor") as http, anyio.create_task_group() as group:

        async def ask(number: int) -> None:
            answers[number] = await call(http, "editor", "get_node", {"nodeId": f"no-{number}"}, id="same")

        for number in range(20):
            group.start_soon(ask, number)
    assert {number: answer["error"]["nodeId"] for number, answer in answers.items()} == {
        n: f"no-{n}" for n in range(20)
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    "breaks", ["\n\ndata: {}\n\n", "\r\n\r\ndata: {}", "\revent: run_finished\rdata: {}\r\r", "\u2028\u2029\x85"]
)
async def test_what_a_tool_says_is_never_an_event_of_its_own(gateway: Gateway, breaks: str) -> None:
    calls = [{"tool": "get_node", "arguments": {"nodeId": f"x{breaks}"}}, {"tool": f"no{breaks}such"}]
    async with gateway.http("editor") as http:
        streamed = await http.post("/agents/editor/runs", json={"calls": calls})
        told = events(streamed.text)
        assert [event["type"] for event in told] == ["tool_started", "tool_failed"] * 2 + ["run_finished"]
        assert told[1]["error"]["nodeId"] == f"x{breaks}"
        async with Handshake(http, gateway.address("editor")) as session:
            asked = {"name": "get_node", "arguments": {"nodeId": f"x{breaks}"}}
            response = await session.request("tools/call", {**asked, "_meta": {"progressToken": 1}})  # by a stream
            assert response.headers["content-type"].startswith("text/event-stream")
            (message,) = messages(response)
            assert told_on_wire(message["result"])["error"]["nodeId"] == f"x{breaks}"


def test_slow_clients_keep_nobody_waiting_and_leave_without_a_trace(gateway: Gateway) -> None:
    """That one is cut off in the end is the bridge's own test, which can shorten the wait."""
    head = b"POST /agents/editor/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    begun = (b"", head, head + b"Content-Length: 500\r\n\r\n", head + b"Content-Length: 9\r\n\r\n{")
    look = call_body("get_node", {"nodeId": "root"}), modern_headers("tools/call", "get_node")
    connections = [socket.create_connection(("127.0.0.1", gateway.port), DEADLINE) for _ in range(25 * len(begun))]
    try:
        for number, connection in enumerate(connections):
            connection.sendall(begun[number % len(begun)])
        for _ in range(10):
            assert post(gateway, *look).json()["result"]["structuredContent"]["nodeId"] == "root"
    finally:
        for connection in connections:
            connection.close()
    for _ in range(10):
        assert post(gateway, *look).status_code == 200
    assert "ClientDisconnect" not in gateway.log, gateway.log[-500:]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
RUNS = JSON | st.fixed_dictionaries(
    {
        "calls": JSON
        | st.lists(st.fixed_dictionaries({"tool": st.just("get_node") | JSON, "arguments": JSON}), max_size=3)
    }
)


@given(body=st.binary(max_size=100) | RUNS.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=60)
def test_any_body_gets_a_proper_answer(gateway: Gateway, body: bytes) -> None:
    for path in ("agents/editor/runs", "api/approvals/x", "agents/editor/mcp"):
        kind = JSON_OR_STREAM if path.endswith("mcp") else {"Content-Type": "application/json"}
        answer = post(gateway, body, kind, path)
        assert answer.status_code in (200, 202, 400, 403), (path, answer.text[:300])
        if answer.status_code == 200 and path.endswith("runs"):
            assert events(answer.text)[-1]["type"] == "run_finished"
