"""An answer to a client of the older era: in one piece, or, if it takes long, by a stream that stays awake."""

import asyncio
from collections.abc import Awaitable

from mcp_types import INTERNAL_ERROR
from starlette.types import Receive, Scope, Send

from mcp_serve.guard import refuse
from mcp_serve.under_way import Stopped
from mcp_serve.whole import Header, send_whole

STREAM_AFTER = 10.0
"""Seconds after which the answer becomes a stream, so that nobody between us and the client gives up waiting."""
PING_EVERY = 15.0
_ENDED = "Session terminated before the request completed"
_PING = b": ping\r\n\r\n"
_HEADERS: list[Header] = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


async def send_in_time(scope: Scope, receive: Receive, send: Send, answer: Awaitable[bytes], *more: Header) -> None:
    """Send the answer once it is there; `more` are further headers."""
    stream = _Stream(send, more)
    timer = asyncio.get_running_loop().call_later(STREAM_AFTER, stream.begin)
    text: bytes | None = None
    try:
        text = await answer
    except Stopped:
        pass
    finally:
        timer.cancel()
        await stream.pause()
    if stream.is_begun:
        await stream.end(text)
    elif text is None:
        await refuse(500, _ENDED, code=INTERNAL_ERROR)(scope, receive, send)
    else:
        await send_whole(scope, send, text, *more)


class _Stream:
    """The stream that an answer becomes."""

    def __init__(self, send: Send, more: tuple[Header, ...]) -> None:
        self._send = send
        self._more = more
        self._pinging: asyncio.Task[None] | None = None
        self.is_begun = False

    def begin(self) -> None:
        """Send the head of the stream, and something from time to time."""
        self._pinging = asyncio.create_task(self._ping())

    async def pause(self) -> None:
        """Send nothing more by itself."""
        if self._pinging is not None:
            self._pinging.cancel()
            await asyncio.wait([self._pinging])

    async def end(self, text: bytes | None) -> None:
        """Send the answer, if there is one, and close."""
        body = b"" if text is None else b"event: message\r\ndata: %b\r\n\r\n" % text
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _ping(self) -> None:
        self.is_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self._more]})
        while True:
            await self._send({"type": "http.response.body", "body": _PING, "more_body": True})
            await asyncio.sleep(PING_EVERY)
