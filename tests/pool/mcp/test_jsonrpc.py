"""The parts that read what anybody may have sent: laws over all inputs, and the SDK as an oracle."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import mcp_types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp_types import version as versions

from grove_kit import ManualClock
from toolgrove.errors import UpstreamFailed
from toolgrove.pool.mcp import era, jsonrpc
from toolgrove.pool.mcp.backoff import FIRST, LONGEST, STABLE, Backoff
from toolgrove.pool.mcp.breaker import FAILURES, OPEN, Breaker
from toolgrove.pool.mcp.connection import Address
from toolgrove.pool.mcp.faults import Broken, Misconfigured, Nonsense
from toolgrove.pool.mcp.inbound_budget import BURST, BYTES, MESSAGES, InboundBudget
from toolgrove.pool.mcp.line_reader import LineReader
from toolgrove.pool.mcp.result import MAX_TEXT, check, failure_of, is_impostor, result_of
from toolgrove.pool.mcp.sse import Events
from toolgrove.pool.secrets import Secrets

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
objects = st.dictionaries(st.text(), values)
KEY = "sk-canary-7f3q9Z"
HIDING = Secrets({})
HIDING.hide(KEY, name="KEY")


def test_the_words_of_the_protocol_are_those_of_the_sdk() -> None:
    assert era.MODERN == versions.LATEST_MODERN_VERSION
    assert era.HANDSHAKE == versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert jsonrpc.METHOD_NOT_FOUND == mcp_types.METHOD_NOT_FOUND
    assert jsonrpc.UNSUPPORTED_VERSION == mcp_types.UNSUPPORTED_PROTOCOL_VERSION
    meta = era.MODERN_ERA.params({}, 1)["_meta"]
    assert set(meta) == {
        "progressToken",
        mcp_types.PROTOCOL_VERSION_META_KEY,
        mcp_types.CLIENT_INFO_META_KEY,
        mcp_types.CLIENT_CAPABILITIES_META_KEY,
    }
    assert set(era.MODERN_ERA.headers("tools/call", "x")) == {
        inbound.MCP_PROTOCOL_VERSION_HEADER,
        inbound.MCP_METHOD_HEADER,
        inbound.MCP_NAME_HEADER,
    }


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
@example(b'{"a": NaN}')
@example(b'{"a": 1e999}')
@example(b'{"a": "\\ud800"}')
@example(b"[" * 100_000)
@example(b'{"a":' * 300 + b"1" + b"}" * 300)
@example(b'{"a": ' + b"9" * 10_000 + b"}")
@example(b"\xff{}")
def test_whatever_is_sent_is_a_message_or_nonsense(raw: bytes) -> None:
    try:
        message = jsonrpc.decode(raw)
    except Nonsense:
        return
    assert json.loads(json.dumps(message, allow_nan=False, ensure_ascii=False).encode()) == message


@pytest.mark.long
@given(objects)
def test_a_message_that_we_write_is_read_as_it_was(message: dict[str, Any]) -> None:
    raw = jsonrpc.encode(message)
    assert b"\n" not in raw
    assert jsonrpc.decode(raw) == message


def test_a_wide_message_is_not_mistaken_for_a_deep_one() -> None:
    wide = {"result": [{"n": [number]} for number in range(1_000)]}
    assert jsonrpc.decode(jsonrpc.encode(wide)) == wide


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)), st.lists(st.integers(min_value=0)))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], places: list[int]) -> None:
    reader = LineReader()
    data = b"".join(line + b"\n" for line in lines)
    assert [line for part in cut(data, places) for line in reader.feed(part)] == lines


@pytest.mark.parametrize("data", [b"x" * 101, b"x" * 101 + b"\n", b"ok\n" + b"x" * 101])
def test_a_line_beyond_the_bound_is_refused_whether_it_ends_or_not(data: bytes) -> None:
    with pytest.raises(Broken):
        list(LineReader(limit=100).feed(data))


@given(
    st.lists(st.text().map(str.encode).filter(lambda data: not set(data) & set(b"\r\n") and data.strip())),
    st.lists(st.integers(min_value=0)),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_are_the_same_however_they_are_cut(payloads: list[bytes], places: list[int], end: bytes) -> None:
    stream = Events()
    data = b"".join(b": a comment" + end + b"data: " + one + end + b"id: 7" + end + end for one in payloads)
    assert [event for part in cut(data, places) for event in stream.feed(part)] == payloads


def test_a_stream_may_begin_with_a_byte_order_mark() -> None:
    stream = Events()
    parts = [b"\xef", b"\xbb\xbfdata: one\r", b"\n\r", b"\ndata: two\r\r"]
    assert [list(stream.feed(part)) for part in parts] == [[], [], [b"one"], [b"two"]]


def test_only_message_events_count_and_their_lines_are_joined() -> None:
    raw = b"event: ping\ndata: no\n\nevent: message\ndata: one\ndata: two\n\ndata:three\n\n:\n\n"
    assert list(Events().feed(raw)) == [b"one\ntwo", b"three"]


@given(st.text().filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_a_header_value_survives_the_way_to_a_server_of_the_sdk(text: str) -> None:
    value = era.header_value(text)
    assert inbound.decode_header_value(value) == text
    assert value.isascii()
    assert value.isprintable()


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), scalars))
def test_mirrored_arguments_are_those_that_the_sdk_would_mirror(arguments: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "object", "properties": {"c": {"type": "integer", "x-mcp-header": "Deep"}}},
        },
    }
    arguments = {**arguments, "b": {"c": arguments.get("c")}}
    theirs = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)
    ours = dict(era.mirrored(era.mirrors(schema), arguments))
    assert ours == {name.lower(): value for name, value in theirs.items()}


@pytest.mark.long
@given(objects)
@example({"content": [{"type": "text"}]})
@example({"content": [{"type": ["text"]}]})
@example({"content": "text", "isError": True})
@example({"isError": True, "structuredContent": {"error": {"code": "rate_limited", "message": "later"}}})
def test_any_answer_is_a_result_or_nonsense(answer: dict[str, Any]) -> None:
    try:
        check(answer, None)
    except (Nonsense, UpstreamFailed):
        return
    result = result_of(answer)
    assert result.keys() <= {"content", "structuredContent", "isError", "_meta"}
    assert failure_of(answer, HIDING.beginning).answer() == result
    assert is_impostor(result) is False


@pytest.mark.parametrize("before", range(MAX_TEXT - len(KEY) - 1, MAX_TEXT + 1))
def test_a_long_failure_is_not_cut_through_a_secret(before: int) -> None:
    answer = {"isError": True, "content": [{"type": "text", "text": "." * before + KEY + "!" * MAX_TEXT}]}
    told = HIDING.scrub_text(failure_of(answer, HIDING.beginning).message)
    assert not any(KEY[:size] in told for size in range(2, len(KEY)))


def test_a_breaker_lets_one_call_find_out() -> None:
    clock = ManualClock()
    breaker = Breaker(clock, lambda: 0.0)
    for _ in range(FAILURES):
        assert breaker.refusal() is None
        breaker.admit()
        breaker.failed()
    assert breaker.refusal() == OPEN
    clock.now += OPEN
    assert breaker.refusal() is None
    breaker.admit()
    assert breaker.refusal() is not None, "one is on its way"
    breaker.failed()
    assert breaker.refusal() == OPEN
    clock.now += OPEN
    breaker.admit()
    breaker.abandoned()
    assert breaker.refusal() is None, "nothing was learned, so another may try"
    breaker.admit()
    breaker.succeeded()
    assert breaker.refusal() is None


@given(st.lists(st.floats(0, STABLE * 2), min_size=1, max_size=30), st.floats(0, 1, exclude_max=True))
def test_a_pause_grows_to_its_bound_and_starts_anew_after_a_stable_life(lives: list[float], chance: float) -> None:
    backoff = Backoff(lambda: chance)
    expected = FIRST
    for lived in lives:
        expected = FIRST if lived >= STABLE else expected
        assert 0.75 * expected <= backoff.pause(lived) <= expected
        expected = min(expected * 2, LONGEST)


def test_a_server_may_talk_in_bursts_but_not_without_end() -> None:
    clock = ManualClock()
    budget = InboundBudget(clock)
    for _ in range(int(MESSAGES * BURST)):
        budget.spend(10)
    clock.now += 1
    for _ in range(int(MESSAGES)):
        budget.spend(10)
    with pytest.raises(Broken):
        budget.spend(10)


def test_a_server_that_says_little_but_long_things_is_cut_off_as_well() -> None:
    clock = ManualClock()
    budget = InboundBudget(clock)
    for _ in range(BURST):
        budget.spend(int(BYTES))
    clock.now += 1
    budget.spend(int(BYTES))
    with pytest.raises(Broken):
        budget.spend(1)


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "authority"),
    [
        ("http://a.example", "a.example", 80, b"/", b"a.example"),
        ("https://a.example/mcp?k=v&w=1 2", "a.example", 443, b"/mcp?k=v&w=1%202", b"a.example"),
        ("http://[::1]:8000/mcp", "::1", 8000, b"/mcp", b"[::1]:8000"),
        ("http://a.example/m\u00fc", "a.example", 80, b"/m%C3%BC", b"a.example"),
    ],
)
def test_an_address_is_read_once(url: str, host: str, port: int, target: bytes, authority: bytes) -> None:
    address = Address.of(url)
    assert (address.host, address.port, address.target, address.authority) == (host, port, target, authority)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "http://a:b", "http://u@a/", "//a/b", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured):
        Address.of(url)


def test_a_number_that_json_does_not_have_is_not_sent_and_its_name_is() -> None:
    assert json.loads(jsonrpc.encode({"a": "NaN, -Infinity"})) == {"a": "NaN, -Infinity"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        jsonrpc.encode({"a": float("nan")})
