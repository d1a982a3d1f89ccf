"""Which way a request takes: what is plain, and that everything else is not."""

import json
from typing import Any

import pytest

from lane.twins import LEGACY, META, MODERN, Headers, head_of, request, with_length
from mcp_serve.plain import MAX_BODY, Plain, plain_body, plain_head

CALL = {"name": "get_node", "arguments": {"nodeId": "root"}}


def way(message: Any, headers: Headers | None = None, era: str = MODERN, method: str = "POST") -> Plain | None:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    head = plain_head(method, with_length(headers or head_of(era, "tools/call", "get_node"), body))
    return None if head is None else plain_body(head, body)


def changed(*path: str, **members: Any) -> dict[str, Any]:
    """A call in order, with other members at one place; None takes a member out."""
    message = request(MODERN, "tools/call", {**CALL})
    place = message
    for key in path:
        place = place[key]
    for name, value in members.items():
        if value is None:
            place.pop(name)
        else:
            place[name] = value
    return message


def in_meta(key: str, value: Any) -> dict[str, Any]:
    message = changed()
    message["params"]["_meta"][key] = value
    return message


def test_calls_and_lists_of_both_eras_are_plain() -> None:
    call = way(request(MODERN, "tools/call", CALL, "a"))
    assert call is not None
    assert (call.id, call.method, call.params["arguments"], call.modern) == (
        "a",
        "tools/call",
        {"nodeId": "root"},
        True,
    )
    assert way(request(MODERN, "tools/list", {}), head_of(MODERN, "tools/list")) is not None
    for method, params in (("tools/call", CALL), ("tools/list", {}), ("ping", {})):
        found = way(request(LEGACY, method, params), era=LEGACY)
        assert found is not None
        assert (found.modern, found.session) == (False, "(the session)")


def test_who_can_be_asked_says_so_with_every_request() -> None:
    told: list[tuple[dict[str, Any], bool]] = [({}, False), ({"roots": {}}, False), ({"elicitation": {}}, True)]
    for capabilities, can_answer in told:
        found = way(in_meta(META + "clientCapabilities", capabilities))
        assert found is not None
        assert found.can_answer is can_answer


@pytest.mark.parametrize(
    "message",
    [
        [request(MODERN, "tools/call", CALL)],
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        changed(jsonrpc="1.0"),
        changed(id=None),
        changed(id=True),
        changed(id=1.0),
        changed(id=2**53),
        changed(method="prompts/get"),
        changed(more=1),
        changed("params", name=5),
        changed("params", arguments=[]),
        changed("params", requestState="x"),
        changed("params", task={}),
        changed("params", _meta=None),
        changed("params", "_meta", progressToken=1),
        in_meta(META + "protocolVersion", "2025-11-25"),
        in_meta(META + "clientInfo", {"name": "no version"}),
        in_meta(META + "clientCapabilities", []),
        in_meta(META + "clientCapabilities", {"extensions": {"x" * 5_000: {}}}),
        in_meta(META + "logLevel", "debug"),
        b"{",
        b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping","params":{}}',
    ],
    ids=str,
)
def test_whatever_is_odd_in_a_body_goes_to_the_sdk(message: Any) -> None:
    assert way(message) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", '"\\ud800"', "9" * 5_000, "[" * 300 + "]" * 300])
def test_values_that_readers_read_differently_go_to_the_sdk(number: str) -> None:
    text = json.dumps(changed()).replace('"root"', number)
    assert way(text.encode()) is None


def odd_heads() -> list[Headers]:
    good = head_of(MODERN, "tools/call", "get_node")
    other = {
        b"mcp-name": (b"another", b"=?base64?Z2V0X25vZGU=?="),
        b"mcp-method": (b"tools/list",),
        b"mcp-protocol-version": (b"2025-06-18", b"2999-01-01"),
        b"content-type": (b"text/plain", b"application/jsonx"),
        b"accept": (b"text/html", b"text/event-stream", b"application/json;q=0"),
    }
    odd = [[pair for pair in good if pair[0] != name] for name in other]
    odd += [[*(pair for pair in good if pair[0] != name), (name, one)] for name, all_ in other.items() for one in all_]
    odd += [[*good, pair] for pair in good]
    odd += [[*good, (b"transfer-encoding", b"chunked")], head_of(LEGACY)[:-1]]
    return odd


@pytest.mark.parametrize("headers", odd_heads(), ids=str)
def test_whatever_is_odd_in_a_head_goes_to_the_sdk(headers: Headers) -> None:
    assert way(changed(), headers) is None


def test_only_a_post_of_a_known_length_is_plain() -> None:
    good = head_of(MODERN, "tools/list")
    assert plain_head("POST", [*good, (b"content-length", str(MAX_BODY).encode())]) is not None
    assert plain_head("GET", [*good, (b"content-length", b"5")]) is None
    for length in (b"", b"-1", b"1.5", b"\xb2", str(MAX_BODY + 1).encode(), b"9" * 5_000):
        assert plain_head("POST", [*good, (b"content-length", length)]) is None
