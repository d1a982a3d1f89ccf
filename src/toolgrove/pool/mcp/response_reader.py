"""Reads HTTP/1.1 answers. httptools finds their parts; what it takes and we do not is refused here."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import httptools

from toolgrove.pool.mcp.faults import Broken

MAX_HEAD = 64 * 1024
"""Bytes that may come without a part of the answer in them: a head, or what stands between the parts of a body."""
_VERSIONS = frozenset(("1.0", "1.1"))
_WITHOUT_BODY = frozenset((204, 304))


class Response(NamedTuple):
    """The head of an answer; names of headers are in lower case."""

    status_code: int
    headers: list[tuple[bytes, bytes]]


class ResponseReader:
    """Is fed what a server sends, and gives one answer; after `renew` the next one over the same connection."""

    def __init__(self) -> None:
        self.response: Response | None = None
        self.is_complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._parts: deque[bytes] = deque()
        self._head: list[tuple[bytes, bytes]] = []
        self._named = self._barren = 0
        self._fault: str | None = None
        self._ends_with_connection = False
        self._can_go_on = True

    def feed(self, data: bytes) -> None:
        """Take what came; Broken says why it is no answer, once what came before is read."""
        before = self.response, len(self._parts)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self.is_complete:
                self._can_go_on = False  # the answer is here, and what follows it is of no use
            else:
                self._fault = self._fault or "sent a malformed HTTP answer"
        self._barren = 0 if (self.response, len(self._parts)) != before else self._barren + len(data)
        if self._barren > MAX_HEAD:
            self._fault = "sent an HTTP head that is too long"
        if not self._parts:
            self.check()

    def check(self) -> None:
        """Raise Broken if the next part cannot be read."""
        if self._fault is not None:
            raise Broken(self._fault)

    @property
    def is_over(self) -> bool:
        """Whether nothing more of it can come."""
        return self.is_complete or self._fault is not None

    def end(self) -> None:
        """Hear that nothing more comes: for some answers that is their end."""
        self._can_go_on = False
        self.check()
        if self.response is None:
            raise Broken("closed the connection without an answer")
        if not self._ends_with_connection and not self.is_complete:
            raise Broken("closed the connection in the middle of an answer")
        self.is_complete = True

    def part(self) -> bytes | None:
        """The next part of the body that is already here."""
        return self._parts.popleft() if self._parts else None

    def renew(self) -> bool:
        """Get ready for the next answer; False where this one did not end, or something followed it unasked."""
        if not self.is_complete or not self._can_go_on:
            return False
        self._parts.clear()
        self._head, self._named, self._barren = [], 0, 0
        self.response, self.is_complete = None, False
        return True

    # What httptools calls.

    def on_message_begin(self) -> None:
        if self.is_complete:
            self._can_go_on = False  # nobody asked for a second answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.response is None:  # else it stands after the body, where nobody looks
            self._head.append((name.lower(), value.strip(b" \t")))
        self._named += len(name) + len(value)
        if self._named > MAX_HEAD:
            self._fault = "sent an HTTP head that is too long"

    def on_headers_complete(self) -> None:
        if self.is_complete:
            return
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in _VERSIONS or status < 100:
            self._fault = "sent a malformed HTTP answer"
        if 100 <= status < 200 and status != 101:
            self._head = []
            return
        names = dict(self._head)
        coding = names.get(b"transfer-encoding")
        if status == 101 or (coding is not None and coding.lower() != b"chunked"):
            self._fault = "sent a malformed HTTP answer"
        self._ends_with_connection = coding is None and b"content-length" not in names and status not in _WITHOUT_BODY
        self.response = Response(status, self._head)

    def on_body(self, body: bytes) -> None:
        if not self.is_complete:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self.response is not None and not self.is_complete:  # else it was a word before the answer
            self.is_complete = True
            self._can_go_on = self._parser.should_keep_alive()
