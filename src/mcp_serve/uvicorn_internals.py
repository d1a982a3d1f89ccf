"""What we rely on in uvicorn without a promise; tests/unit/test_dependency_insides.py says what moved."""

import asyncio
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mcp_serve.connections import Connections
from mcp_serve.whole import WRITE, Header, lines, on_the_wire

HEAD_WITHIN = 10.0
BODY_WITHIN = 30.0
MAX_HEAD = 2**16
MAX_BODY = 2**24
"""Bytes on the wire; what a body may say is limited further in."""
INVALID = "Invalid HTTP request received; its target must be a path, such as /health."


class StrictHttp(HttpToolsProtocol):
    """Closes a connection whose request does not arrive in time, or is endless; offers no other protocol."""

    def __init__(self, connections: Connections, **setup: Any) -> None:
        super().__init__(**setup)
        self._connections = connections

    def connection_made(self, transport: Any) -> None:
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._connections.opened(transport)
        self._room = MAX_HEAD
        self._within = HEAD_WITHIN
        self._is_read = self._wants_upgrade = False
        self._start_clock()

    def _start_clock(self) -> None:
        self._deadline: asyncio.TimerHandle | None = self.loop.call_later(self._within, self._too_late)

    def _too_late(self) -> None:
        self.transport.close()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def data_received(self, data: bytes) -> None:
        """Read on, within the time and the room that a request has."""
        self._is_read = False
        self._room -= len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.logger.warning(INVALID)
            self.send_400_response(INVALID)
        if self._room < 0 and not self.transport.is_closing():
            self.send_400_response("The request is too long.")
        if not self._is_read and self._deadline is None:  # most requests are here at once and need no clock
            self._start_clock()

    def _feed(self, data: bytes) -> None:
        """Let the parser read, and again without the wish for another protocol: with one, it would drop the body."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if not self._wants_upgrade:  # CONNECT, which the app refuses
                    return
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._wants_upgrade = False
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """Begin to read, be it behind another request in the same packet."""
        super().on_message_begin()
        self._is_read = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the blanks around it; the parser strips them on the left only."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the head is to be read again."""
        self._wants_upgrade = self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)
        if self._wants_upgrade:
            return
        if not self.url.startswith(b"/"):
            raise ValueError("a target with an authority would name two hosts")  # the parser turns this into a 400
        self._connections.asked(self.transport)
        self._room = MAX_BODY
        self._within = BODY_WITHIN
        self._stop_clock()
        self._begin()

    def _begin(self) -> None:
        """Let the app answer."""
        super().on_headers_complete()
        self.scope["extensions"] = {WRITE: {"write": partial(self._write_whole, self.cycle)}}
        self.headers = []  # trailers are not for the app

    async def _write_whole(self, cycle: RequestResponseCycle, body: bytes, more: tuple[Header, ...]) -> None:
        """Answer the request of a cycle with 200 in one write; head and body apart would be two packets."""
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if cycle.disconnected:
            return
        closing = () if cycle.keep_alive else (CLOSE_HEADER,)
        self.transport.write(on_the_wire(lines(cycle.default_headers), body, (*more, *closing)))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_message_complete(self) -> None:
        """Stop the clock until the next request."""
        if self._wants_upgrade:
            return
        self._room, self._within = MAX_HEAD, HEAD_WITHIN
        self._is_read = True
        self._stop_clock()
        self._end()

    def _end(self) -> None:
        """Let the app know that there is no more of the body."""
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Be idle, unless another request came meanwhile."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._connections.answered(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock for good."""
        self._stop_clock()
        self._connections.closed(self.transport)
        super().connection_lost(exc)
