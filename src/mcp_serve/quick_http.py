"""HTTP that answers a plain request on the spot; every other takes uvicorn's way to the app."""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from mcp_serve.connections import Connections
from mcp_serve.eager import Beginner, Rest
from mcp_serve.lane import Reply
from mcp_serve.shortcut import Shortcut
from mcp_serve.uvicorn_internals import StrictHttp
from mcp_serve.whole import Header, lines, on_the_wire


class QuickHttp(StrictHttp):
    """Asks the shortcut about what is read between two requests, and writes an answer that is there at once.

    An answer that has to wait goes on in the task of the request, which is read as if nobody had looked at it.
    """

    def __init__(
        self,
        connections: Connections,
        shortcut: Shortcut | None,
        beginner: Beginner,
        ending: Callable[[ASGIApp], ASGIApp],
        **setup: Any,
    ) -> None:
        super().__init__(connections, **setup)
        self._shortcut = shortcut if shortcut is not None and shortcut.is_open else None
        self._beginner, self._ending = beginner, ending
        self._is_between = True
        self._unread: bytes | None = None
        self._rest: tuple[Rest[bytes], ASGIApp] | None = None
        self._headers: list[Header] = []
        self._lines = b""
        self._idle_since: float | None = None
        self._closing: asyncio.TimerHandle | None = None

    @property
    def _source(self) -> str:
        return "" if self.client is None else self.client[0]

    def data_received(self, data: bytes) -> None:
        """Answer what is one plain request, or read on."""
        self._idle_since = None
        if self._shortcut is not None and self._is_free:
            reply = self._shortcut.reply(data, self._source)
            text = None if reply is None else self._begun(reply)
            if reply is not None and text is not None:
                self._write(text, reply)
                return
            self._unread = data if reply is None else None
        super().data_received(data)

    @property
    def _is_free(self) -> bool:
        """Whether nothing is half read, or answered, or waits to be sent."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return self._is_between and is_answered and not (self.flow.write_paused or self.transport.is_closing())

    def _begun(self, reply: Reply) -> bytes | None:
        """The answer; None where it has to wait."""
        begun = self._beginner.begin(reply.answer)
        if not isinstance(begun, Rest):
            return begun
        self._rest = begun, self._ending(reply._replace(answer=begun.work).deliver)
        return None

    def _write(self, text: bytes, reply: Reply) -> None:
        self._deadline.cancel()
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if self._headers is not self.server_state.default_headers:  # others once a second
            self._headers = self.server_state.default_headers
            self._lines = lines(self._headers)
        self.transport.write(on_the_wire(self._lines, text, reply.more))
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
        if self._rest is None:
            super()._start_asgi_task(cycle, app)
            return
        (rest, deliver), self._rest = self._rest, None
        task = rest.go_on(cycle.run_asgi(deliver))  # type: ignore[arg-type]  # uvicorn has types of its own for this
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock for good."""
        if self._closing is not None:
            self._closing.cancel()
        super().connection_lost(exc)
