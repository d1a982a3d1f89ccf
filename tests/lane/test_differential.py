"""Generated requests, valid, odd and hostile, to the lane and to the SDK: the answers are the same."""

import copy
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from apcore_mcp import create_app
from e2e.edge import FOREIGN_HOSTS, FOREIGN_ORIGINS
from grove_kit import ManualClock
from lane.twins import (
    LEGACY,
    META,
    MODERN,
    SESSION,
    THIS_SESSION,
    Asked,
    Headers,
    Make,
    Twins,
    head_of,
    request,
    twins,
    with_length,
)
from mcp_serve.plain import plain_body, plain_head
from modules import Add, Sample, echo, registry_of
from toolgrove import Config, Grove

EXAMPLES = int(os.environ.get("LANE_EXAMPLES", "60"))
PROJECT = {
    "workspace": {"store": "memory"},
    "agents": {"writer": {"role": "editor", "tools": ["*"]}, "reader": {"role": "reader", "tools": ["get_node"]}},
}
GATEWAY, BRIDGE = "/agents/writer/mcp", "/mcp"
TOOLS = {
    GATEWAY: ["get_node", "get_children", "delete_node", "search_nodes", "nothing_of_the_kind", "", "gét_node"],
    BRIDGE: ["math.add", "text.echo", "text.fail", "nothing.of.the.kind", ""],
}


@asynccontextmanager
async def gateway() -> AsyncIterator[tuple[Make, str]]:
    async with Grove(Config.model_validate(PROJECT), clock=ManualClock()) as grove:
        yield grove.asgi_app, grove.tokens.issue("writer")


def _fail(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    raise ValueError("no")


@asynccontextmanager
async def bridge() -> AsyncIterator[tuple[Make, str]]:
    modules = {"math.add": Add(), "text.echo": Sample(echo), "text.fail": Sample(_fail)}
    yield lambda: create_app(registry_of(modules), transport="streamable-http"), "nobody"


@pytest.fixture(scope="module", params=["gateway", "bridge"])
def both(request: pytest.FixtureRequest) -> Iterator[Twins]:
    apps, path = {"gateway": (gateway, GATEWAY), "bridge": (bridge, BRIDGE)}[request.param]
    with twins(apps, path) as served:
        yield served


def same(both: Twins, asked: Asked) -> None:
    mine, theirs = both.ask(asked)
    assert mine == theirs, asked


def is_plain(asked: Asked) -> bool:
    head = plain_head(asked.method, asked.headers)
    return head is not None and plain_body(head, asked.body) is not None


# Generated.

NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.just(10**400))
TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(["root", "é", "\u0000", "a\r\nb", "=?base64?cm9vdA==?="]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ARGUMENTS = st.one_of(
    st.just({}),
    st.just({"nodeId": "root"}),
    st.just({"a": 1, "b": 2}),
    st.dictionaries(st.sampled_from(["nodeId", "a", "b", "depth", "versionToken", "x"]), VALUES, max_size=3),
)
METHODS = ["tools/call", "tools/list", "ping", "server/discover", "prompts/list", "resources/list", "tools/cal", ""]
KEYS = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "name",
    "arguments",
    "_meta",
    "cursor",
    "task",
    "progressToken",
    "requestState",
]
META_KEYS = [META + each for each in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "other")]
HEADERS = [
    b"host", b"origin", b"authorization", b"content-type", b"accept", b"mcp-protocol-version", b"mcp-method",
    b"mcp-name", SESSION, b"content-length", b"mcp-param-x", b"transfer-encoding", b"x-forwarded-host",
    b"content-encoding",
]  # fmt: skip
HEADER_VALUES = [
    b"", b"tools/call", b"tools/list", b"get_node", b"math.add", MODERN.encode(), LEGACY.encode(), b"2024-11-05",
    b"1999-01-01", b"application/json", b"application/json; charset=utf-8", b"APPLICATION/JSON", b"text/plain", b"*/*",
    b"text/event-stream", b"application/json;q=0", b"evil.com", b"null", b"http://evil.com", b"Bearer (token)",
    b"Bearer wrong", b"Basic x",
    b"=?base64?Z2V0X25vZGU=?=", THIS_SESSION, b"0" * 32, b"\xff", b"12", b"-1", b"99999999", b"gzip", b"chunked",
]  # fmt: skip


@st.composite
def requests(draw: st.DrawFn, path: str) -> Asked:
    """A request that is in order, and then up to three times not quite."""
    era = draw(st.sampled_from([MODERN, MODERN, LEGACY]))
    method = draw(st.sampled_from(["tools/call", "tools/call", *METHODS]))
    name = draw(st.sampled_from(TOOLS[path])) if method == "tools/call" else ""
    params = {"name": name, "arguments": draw(ARGUMENTS)} if method == "tools/call" else {}
    number = draw(
        st.one_of(st.integers(-3, 3), st.integers(2**52, 2**70), TEXTS, st.none(), st.booleans(), st.just(1.5))
    )
    message: Any = request(era, method, params, number)
    headers = head_of(era, method, name if name.isascii() else "=?base64?Z8OpdF9ub2Rl?=")
    how_odd = draw(st.integers(0, 3))
    for _ in range(how_odd):
        message, headers = draw(oddities(message, headers))
    text = json.dumps(message, ensure_ascii=draw(st.booleans()))
    body = (
        draw(spoiled(text.encode("utf-8", "replace")))
        if draw(st.integers(0, 5)) == 0
        else text.encode("utf-8", "replace")
    )
    if not any(key == b"content-length" for key, _ in headers) and draw(st.integers(0, 9)):
        headers = with_length(headers, body)
    return Asked(
        headers,
        body,
        draw(st.sampled_from(["POST"] * 12 + ["PUT"])),
        draw(st.sampled_from([path] * 12 + ["/mcp/", "/agents/reader/mcp"])),
    )


@st.composite
def oddities(draw: st.DrawFn, message: Any, headers: Headers) -> tuple[Any, Headers]:
    where = draw(st.sampled_from(["header", "key", "meta", "shape"]))
    if where == "header":
        kind = draw(st.sampled_from(["drop", "twice", "change", "add"]))
        at = draw(st.integers(0, max(0, len(headers) - 1)))
        if kind == "add" or not headers:
            return message, [*headers, (draw(st.sampled_from(HEADERS)), draw(st.sampled_from(HEADER_VALUES)))]
        changed = {"drop": [], "twice": [headers[at]] * 2}.get(
            kind, [(headers[at][0], draw(st.sampled_from(HEADER_VALUES)))]
        )
        return message, [*headers[:at], *changed, *headers[at + 1 :]]
    if where == "shape" or not isinstance(message, dict):
        return draw(
            st.sampled_from([[message], [], None, "x", {**_of(message), "result": {}}, {"jsonrpc": "2.0"}])
        ), headers
    message = copy.deepcopy(message)
    params = message.get("params")
    holder = message if where == "key" and draw(st.booleans()) else params
    key = draw(st.sampled_from(KEYS))
    if where == "meta" and isinstance(params, dict):
        holder = params.setdefault("_meta", {})
        key = draw(st.sampled_from([*META_KEYS, "progressToken", "toolgrove/session", "x"]))
    if isinstance(holder, dict):
        if draw(st.booleans()):
            holder.pop(key, None)
        else:
            holder[key] = draw(VALUES)
    return message, headers


def _of(message: Any) -> dict[str, Any]:
    return message if isinstance(message, dict) else {}


@st.composite
def spoiled(draw: st.DrawFn, body: bytes) -> bytes:
    at = draw(st.integers(0, len(body)))
    with_ = draw(
        st.sampled_from(
            [b"", b"}", b",", b"NaN", b"1e999", b"\\ud800", b"\xff", b"\x00", b'"a":1,', b"\xef\xbb\xbf", b" ", b"-"]
        )
    )
    return body[:at] + with_ + body[at + draw(st.integers(0, 2)) :]


@pytest.mark.parametrize("way", ["generated"])
def test_generated_requests_are_answered_alike(both: Twins, way: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(both.path))
    def alike(asked: Asked) -> None:
        event("plain" if is_plain(asked) else "odd")
        same(both, asked)

    alike()


# By hand: what must be plain, and what the list of threats names.


def call(era: str, name: str, arguments: dict[str, Any], number: Any = 1, path: str = GATEWAY) -> Asked:
    body = json.dumps(request(era, "tools/call", {"name": name, "arguments": arguments}, number)).encode()
    return Asked(with_length(head_of(era, "tools/call", name), body), body, path=path)


def test_what_clients_send_all_day_is_plain_and_answered_alike(both: Twins) -> None:
    name = TOOLS[both.path][0]
    for number, arguments in ((1, {"nodeId": "root", "a": 1, "b": 2}), ("x", {}), (-7, {"nodeId": "é\u2028"})):
        for era in (MODERN, LEGACY):
            asked = call(era, name, arguments, number, both.path)
            assert is_plain(asked)
            same(both, asked)
    for era, method in itertools.product((MODERN, LEGACY), ("tools/list", "ping", "server/discover")):
        body = json.dumps(request(era, method, {})).encode()
        asked = Asked(with_length(head_of(era, method), body), body, path=both.path)
        assert is_plain(asked) is ((era, method) not in {(MODERN, "ping"), (LEGACY, "server/discover")})
        same(both, asked)


def test_one_of_the_two_has_a_lane(both: Twins) -> None:
    """In a session the two ways wrap an answer differently, which tells them apart."""
    asked = call(LEGACY, TOOLS[both.path][0], {"nodeId": "root"}, path=both.path)
    kinds = [both.run(one.ask(asked)).headers[b"content-type"] for one in (both.lane, both.sdk)]
    assert kinds == [b"application/json", b"text/event-stream"]


def bodies(path: str) -> Iterator[bytes]:
    """B9–B11 and B15 of the list: what two readers could read differently, and what is too much."""
    name = TOOLS[path][0]
    good = json.dumps(request(MODERN, "tools/call", {"name": name, "arguments": {"nodeId": "root"}}))
    yield good.replace('"name":', f'"name": "{name}", "name":', 1).encode()
    yield good.replace('"nodeId":', '"nodeId": "x", "node\\u0049d":', 1).encode()
    yield f"[{good}]".encode()
    yield f"[{good},{good}]".encode()
    for odd in (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        '"\\ud800"',
        "[" * 100_000,
        "[" * 250 + "]" * 250,
        "9" * 5_000,
    ):
        yield good.replace('"root"', odd, 1).encode()
    for number in ("null", "1.5", "true", "[]", "{}", '""', f'"{"x" * 5_000}"', "9" * 400, "-0", "1e2"):
        yield good.replace('"id": 1', f'"id": {number}', 1).encode()
    yield b"\xef\xbb\xbf" + good.encode()
    yield good.encode("utf-16")
    yield good.replace("root", "é").encode("latin-1")
    yield good.encode() + b" {}"
    yield b""
    yield b" " * 5_000_000
    yield good.replace("root", "x" * 4_200_000).encode()


def test_hostile_bodies_are_refused_alike(both: Twins) -> None:
    for body in bodies(both.path):
        for era in (MODERN, LEGACY):
            headers = with_length(head_of(era, "tools/call", TOOLS[both.path][0]), body)
            same(both, Asked(headers, body, path=both.path))


def heads(path: str) -> Iterator[Headers]:
    """A1–A10, B1–B6 and C1 of the list: hosts, origins, identities and routing headers that are not right."""
    name = TOOLS[path][0]
    good = head_of(MODERN, "tools/call", name)

    def changed(key: bytes, *values: bytes) -> Headers:
        return [pair for pair in good if pair[0] != key] + [(key, value) for value in values]

    for host in FOREIGN_HOSTS:
        yield changed(b"host", host.encode())
    yield changed(b"host")
    yield changed(b"host", b"127.0.0.1:8000", b"127.0.0.1:8000")
    yield [*good, (b"x-forwarded-host", b"localhost")]
    for origin in (*FOREIGN_ORIGINS, "http://127.0.0.1:8000"):
        yield changed(b"origin", origin.encode())
    for kind in (
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"application/jsonx",
        b"application/json, text/plain",
        b"",
    ):
        yield changed(b"content-type", kind)
    yield changed(b"content-type")
    for accept in (
        b"text/event-stream",
        b"application/json",
        b"*/*",
        b"application/*",
        b"text/html",
        b"application/json;q=1",
    ):
        yield changed(b"accept", accept)
    yield changed(b"accept")
    for token in (b"", b"Bearer", b"Bearer wrong", b"bearer (token)", b"Basic (token)", b"Bearer (token) x"):
        yield changed(b"authorization", token)
    yield changed(b"authorization")
    yield changed(b"authorization", b"Bearer (token)", b"Bearer (token)")
    yield changed(b"mcp-name", b"another")
    yield changed(b"mcp-name")
    yield changed(b"mcp-name", name.encode(), name.encode())
    yield changed(b"mcp-method", b"tools/list")
    yield changed(b"mcp-method")
    for version in (b"2025-11-25", b"2025-06-18", b"2999-01-01", b""):
        yield changed(b"mcp-protocol-version", version)
    legacy = head_of(LEGACY)
    for session in (b"0" * 32, b"", b"\xff", b"(the session) "):
        yield [pair for pair in legacy if pair[0] != SESSION] + [(SESSION, session)]
    yield [*legacy, (SESSION, THIS_SESSION)]


def test_hostile_heads_are_refused_alike(both: Twins) -> None:
    name = TOOLS[both.path][0]
    body = json.dumps(request(MODERN, "tools/call", {"name": name, "arguments": {"nodeId": "root"}})).encode()
    for headers in heads(both.path):
        same(both, Asked(with_length(headers, body), body, path=both.path))


def test_an_address_of_another_agent_looks_alike(both: Twins) -> None:
    for path in (
        "/agents/reader/mcp",
        "/agents/nobody/mcp",
        "/agents//mcp",
        "/agents/writer/mcp/",
        "/agents/writer/x/mcp",
        "/",
    ):
        same(both, call(MODERN, "get_node", {"nodeId": "root"})._replace(path=path))


def test_a_client_that_can_be_asked_is_answered_alike(both: Twins) -> None:
    name = TOOLS[both.path][0]
    capabilities: Any
    for capabilities in (
        {"elicitation": {}},
        {"elicitation": {"form": {}}},
        {"roots": {}},
        {"x": 1},
        {"elicitation": 5},
        [],
        None,
    ):
        message = request(MODERN, "tools/call", {"name": name, "arguments": {"nodeId": "root", "a": 1, "b": 1}})
        message["params"]["_meta"][META + "clientCapabilities"] = capabilities
        body = json.dumps(message).encode()
        same(both, Asked(with_length(head_of(MODERN, "tools/call", name), body), body, path=both.path))
