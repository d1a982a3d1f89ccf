"""HTTP that answers a plain request on the spot; every other takes uvicorn's way to the app."""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from mcp_serve.awaited import Awaited
from mcp_serve.connections import Connections
from mcp_serve.eager import Beginner, Rest
from mcp_serve.fair_queue import FairQueue
from mcp_serve.lane import Reply
from mcp_serve.presence import WATCH_AFTER
from mcp_serve.shortcut import Shortcut
from mcp_serve.uvicorn_internals import StrictHttp
from mcp_serve.whole import Header, lines, on_the_wire


class QuickHttp(StrictHttp):
    """Asks the shortcut about what is read between two requests, and writes an answer that is there at once, or soon.

    A request whose answer takes longer, or becomes a stream, is read by uvicorn as if nobody had looked at it. So is
    one behind which the client sends more, and one that is under way when the server stops. What comes while the loop
    has enough to do in its turn waits in the queue of all connections.
    """

    def __init__(
        self,
        connections: Connections,
        shortcut: Shortcut | None,
        beginner: Beginner,
        queue: FairQueue,
        ending: Callable[[ASGIApp], ASGIApp],
        **setup: Any,
    ) -> None:
        super().__init__(connections, **setup)
        self._shortcut = shortcut if shortcut is not None and shortcut.is_open else None
        self._beginner, self._queue, self._ending = beginner, queue, ending
        self._waiting = bytearray()
        self._was_idle = self._is_at_end = False
        self._is_between = True
        self._unread: bytes | None = None
        self._awaited: Awaited | None = None
        self._handing_over: asyncio.TimerHandle | None = None
        self._deliver: ASGIApp | None = None
        self._headers: list[Header] = []
        self._lines = b""
        self._idle_since: float | None = None
        self._closing: asyncio.TimerHandle | None = None

    @property
    def _source(self) -> str:
        return "" if self.client is None else self.client[0]

    def data_received(self, data: bytes) -> None:
        """Go on at once, or wait for those that came before."""
        self._idle_since = None
        if not self._waiting:
            if self._queue.may_go_on():
                self._read(data)
                return
            self._queue.wait(self._go_on)
            self._unset_keepalive_if_required()
            self._was_idle = self._connections.asked(self.transport)
        self._waiting += data
        if len(self._waiting) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never has a reason to stay open
        """Stay open for as long as something that was sent before the end waits."""
        self._is_at_end = bool(self._waiting)
        return self._is_at_end

    def _go_on(self) -> None:
        """Read what has waited."""
        data = bytes(self._waiting)
        self._waiting.clear()
        if not data or self.transport.is_closing():
            return
        if self._was_idle:
            self._connections.answered(self.transport)
        self.flow.resume_reading()
        try:
            self._read(data)
        except Exception as error:
            self.loop.call_exception_handler({"message": "Reading a request failed.", "exception": error})
            self.transport.abort()
        if self._is_at_end:
            self.transport.close()

    def _read(self, data: bytes) -> None:
        """Answer what is one plain request, or read on."""
        if self._awaited is not None:
            self._hand_over()
        if self._shortcut is not None and self._is_free:
            reply = self._shortcut.reply(data, self._source)
            if reply is not None:
                self._take(reply, data)
                return
            self._unread = data
        super().data_received(data)

    def _too_late(self) -> None:
        """Close a connection whose request is not here in time, but not before what is here has been read."""
        deadline = self._deadline
        self._go_on()
        if self._deadline is deadline:
            super()._too_late()

    @property
    def _is_free(self) -> bool:
        """Whether nothing is half read, or answered, or waits to be sent."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return self._is_between and is_answered and not (self.flow.write_paused or self.transport.is_closing())

    def _take(self, reply: Reply, data: bytes) -> None:
        """Write the answer, or wait for it."""
        begun = self._beginner.begin(reply.answer)
        if isinstance(begun, Rest):
            self._wait(Awaited(data, reply, begun, self._came))
        else:
            self._write(begun, reply)

    def _wait(self, awaited: Awaited) -> None:
        self._awaited = awaited
        if awaited.reply.stream is not None:
            awaited.reply.stream.on_first = self._hand_over
        self._handing_over = self.loop.call_later(WATCH_AFTER, self._hand_over)
        self._stop_clock()
        self._unset_keepalive_if_required()
        self._connections.asked(self.transport)
        self.tasks.add(awaited.task)
        awaited.task.add_done_callback(self.tasks.discard)

    def _came(self, awaited: Awaited) -> None:
        """Write an answer that came soon; uvicorn tells of one that failed."""
        if awaited is not self._awaited:
            return
        if awaited.error is not None:
            self._hand_over()
            return
        self._no_longer_waits()
        if not self.transport.is_closing():
            self._connections.answered(self.transport)
            self._write(awaited.text, awaited.reply)

    def _hand_over(self) -> None:
        """Let uvicorn read the request whose answer is awaited.

        For a client who is gone nobody makes it, unless it has a session: there, to go away is not to cancel.
        """
        awaited = self._no_longer_waits()
        if awaited is None:
            return
        if self.transport.is_closing():
            if awaited.reply.stream is None:
                awaited.task.cancel()
            else:
                awaited.reply.stream.drop()
        else:
            self._deliver = self._ending(awaited.reply._replace(answer=awaited.outcome).deliver)
            super().data_received(awaited.data)

    def _no_longer_waits(self) -> Awaited | None:
        awaited, self._awaited = self._awaited, None
        if self._handing_over is not None:
            self._handing_over.cancel()
            self._handing_over = None
        return awaited

    def _write(self, text: bytes, reply: Reply) -> None:
        if self._deadline is not None:
            self._stop_clock()
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if self._headers is not self.server_state.default_headers:  # others once a second
            self._headers = self.server_state.default_headers
            self._lines = lines(self._headers)
        self.transport.write(on_the_wire(self._lines, text, reply.more))
        if reply.stream is not None:
            reply.stream.drop()
        self.server_state.total_requests += 1
        self._connections.served(self.transport)
        self._idle_since = self.loop.time()
        if self._closing is None:  # one clock runs through many requests
            self._closing = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._closing = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._closing = self.loop.call_later(left, self._close_if_idle)
        else:
            self.timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        self._is_between = False
        super().on_message_begin()

    def _begin(self) -> None:
        data, self._unread = self._unread, None
        parser = self.parser
        is_usual = not self.expect_100_continue and parser.get_http_version() == "1.1" and parser.should_keep_alive()
        if data is not None and self._shortcut is not None and is_usual:
            self._shortcut.learn(data, parser.get_method(), self.url, self.headers, self._source)
        super()._begin()

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._is_between = not self._wants_upgrade

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        deliver: Any = self._deliver
        self._deliver = None
        super()._start_asgi_task(cycle, app if deliver is None else deliver)

    def shutdown(self) -> None:
        """Close the connection once nothing is under way on it."""
        self._go_on()
        self._hand_over()
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock for good, and read nothing more."""
        self._waiting.clear()
        if self._closing is not None:
            self._closing.cancel()
        super().connection_lost(exc)
