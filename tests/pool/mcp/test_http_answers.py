"""HTTP answers as our client of MCP servers reads them, beside h11, which reads them as the standard says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrove.pool.mcp.faults import Broken
from toolgrove.pool.mcp.request_head import head_of, lines_of
from toolgrove.pool.mcp.response_reader import MAX_HEAD, ResponseReader


class Answer(NamedTuple):
    """What was read of a stream that ended after it; `again` says whether the connection could be used again."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    again: bool


def by_us(pieces: Iterable[bytes], *, ends: bool) -> Answer | None:
    reader = ResponseReader()
    body = b""
    try:
        for piece in pieces:
            reader.feed(piece)
            while (part := reader.part()) is not None:
                body += part
            reader.check()
        if ends and not reader.is_complete:
            reader.end()
    except Broken:
        return None
    if reader.response is None or not reader.is_complete:
        return None
    return Answer(*reader.response, body, reader.renew())


def by_h11(pieces: Iterable[bytes], *, ends: bool) -> Answer | None:
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    reader.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    reader.send(h11.EndOfMessage())
    response, body = None, b""
    try:
        for piece in [*pieces, *([b""] if ends else [])]:
            reader.receive_data(piece)
            while (event := reader.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    response = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    assert response is not None
                    again = bool(piece) and reader.their_state is h11.DONE and not reader.trailing_data[0]
                    return Answer(response.status_code, list(response.headers), body, again)
                elif not isinstance(event, h11.InformationalResponse):
                    return None
    except h11.RemoteProtocolError:
        return None
    return None


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWERS = {
    "plain": PLAIN,
    "no body": b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    "without a body by its status": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "chunked": CHUNKED + b"2\r\n{}\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"2\r\n{}\r\n0\r\nX-Late: 1\r\n\r\n",
    "until it ends": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it",
    "closing": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    "the old version": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "no reason": b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n{}",
    "a word before": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + PLAIN,
    "two words before": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + PLAIN,
    "spaces around a value": b"HTTP/1.1 200 OK\r\nX-A:  \t a b \t \r\nContent-Length: 0\r\n\r\n",
    "an empty value": b"HTTP/1.1 200 OK\r\nX-A:\r\nContent-Length: 0\r\n\r\n",
    "the same header twice": b"HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 0\r\n\r\n",
    "latin-1": b"HTTP/1.1 200 OK\r\nX-A: caf\xe9\r\nContent-Length: 0\r\n\r\n",
    "an error": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
    "half a chunk": CHUNKED + b"a\r\n{}",
    "no last chunk": CHUNKED + b"2\r\n{}\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
    "a length in words": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}",
    "a length with a sign": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "an endless length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    "a chunk in words": CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    "a chunk without its end": CHUNKED + b"2\r\n{}XX0\r\n\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    "two codings": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a space in a name": b"HTTP/1.1 200 OK\r\nX A: 1\r\nContent-Length: 0\r\n\r\n",
    "a space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
    "no name": b"HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 0\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\nX-A\r\nContent-Length: 0\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 0\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * (3 * MAX_HEAD),
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X-A: 1234567890\r\n" * (MAX_HEAD // 8),
    "a second answer": PLAIN + PLAIN,
    "something after it": PLAIN + b"\x00garbage",
}
STRICTER = {
    "both framings": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a version to come": b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "one length twice": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
}
"""Answers that h11 takes and we do not: two readers could see different ones, or the protocol is not ours."""


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(stream) + 1) for place in places}), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if end > start]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_as_h11_reads_it(name: str, ends: bool) -> None:
    stream = ANSWERS[name]
    expected = by_h11([stream], ends=ends)
    assert by_us(cut(stream, range(0, len(stream), 65536)), ends=ends) == expected
    assert by_us(cut(stream, [7, 16, 17, 18, 40, len(stream) - 1]), ends=ends) == expected


@pytest.mark.parametrize("name", STRICTER)
def test_an_answer_that_two_readers_may_read_differently_is_refused(name: str) -> None:
    assert by_h11([STRICTER[name]], ends=True) is not None
    assert by_us([STRICTER[name]], ends=True) is None


NAMES = st.sampled_from([b"Content-Type", b"Mcp-Session-Id", b"x-a", b"Date"])
VALUES = st.binary(max_size=20).map(lambda raw: bytes(32 + byte % 95 for byte in raw).strip())


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([200, 202, 400, 404, 503]),
    st.lists(st.tuples(NAMES, VALUES), max_size=4),
    st.lists(st.binary(min_size=1, max_size=50), max_size=4),
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_an_answer_in_any_pieces_is_read_as_h11_reads_it(
    status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes], chunked: bool, places: list[int]
) -> None:
    body = (
        b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n" if chunked else b"".join(parts)
    )
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    head = b"\r\n".join([b"HTTP/1.1 %d X" % status, *(b"%b: %b" % pair for pair in headers), framing])
    stream = head + b"\r\n\r\n" + body
    expected = by_h11([stream], ends=False)
    assert expected is not None
    assert by_us(cut(stream, places), ends=False) == expected


def test_answers_follow_each_other_over_one_connection() -> None:
    reader = ResponseReader()
    for number in range(3):
        reader.feed(b"HTTP/1.1 200 OK\r\nX-N: %d\r\nContent-Length: 1\r\n\r\n%d" % (number, number))
        assert reader.response is not None
        assert dict(reader.response.headers)[b"x-n"] == b"%d" % number
        assert reader.part() == b"%d" % number
        assert reader.renew()


def test_chunks_that_hold_nothing_end_the_patience() -> None:
    reader = ResponseReader()
    reader.feed(CHUNKED)
    reader.feed(b"1;" + b"x" * (MAX_HEAD - 2))
    with pytest.raises(Broken, match="too long"):
        reader.feed(b"x")


def test_the_head_of_a_request_is_what_h11_writes() -> None:
    headers = [(b"host", b"example.org"), (b"mcp-name", b"a b"), (b"x-empty", b"")]
    writer = h11.Connection(h11.CLIENT)
    whole = writer.send(h11.Request(method="POST", target="/mcp", headers=[*headers, (b"content-length", b"2")]))
    assert head_of(b"POST", b"/mcp", lines_of(headers), 2) == whole


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x", b"a\r\nevil: 1"),
        (b"x", b"a\nb"),
        (b"x", b"a\x00"),
        (b"x", b" a"),
        (b"x", b"a "),
        (b"x\r\nevil", b"1"),
        (b"x y", b"1"),
        (b"", b"1"),
    ],
)
def test_a_header_that_would_break_the_head_is_not_written(name: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match="HTTP cannot carry"):
        lines_of([(name, value)])
    with pytest.raises(h11.LocalProtocolError):
        h11.Connection(h11.CLIENT).send(
            h11.Request(method="POST", target="/", headers=[(b"host", b"x"), (name, value)])
        )


def test_a_target_that_would_break_the_head_is_not_written() -> None:
    with pytest.raises(ValueError, match="HTTP cannot carry"):
        head_of(b"GET", b"/ HTTP/1.1\r\nevil: 1", b"", None)
