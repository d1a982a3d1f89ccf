"""An answer to a client of the older era: in one piece, or, once it takes long or has to say more, by a stream."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

from mcp_serve.guard import refuse
from mcp_serve.protocol import INTERNAL_ERROR
from mcp_serve.under_way import Stopped
from mcp_serve.whole import Header, send_whole

STREAM_AFTER = 10.0
"""Seconds after which the answer becomes a stream, so that nobody between us and the client gives up waiting."""
PING_EVERY = 15.0
_ENDED = "Session terminated before the request completed"
_PING = b": ping\r\n\r\n"
_EVENT = b"event: message\r\ndata: %b\r\n\r\n"
_HEADERS: list[Header] = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


async def send_in_time(scope: Scope, receive: Receive, stream: "Stream", answer: Awaitable[bytes]) -> None:
    """Send the answer once it is there, by its stream if that has begun."""
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
        await refuse(500, _ENDED, code=INTERNAL_ERROR)(scope, receive, stream.send)
    else:
        await send_whole(scope, stream.send, text, *stream.more)
    stream.drop()


class Stream:
    """The stream that an answer becomes; `more` are further headers of the answer in either form.

    `send` is given to it by whoever delivers the answer.
    """

    def __init__(self, *more: Header) -> None:
        self.send: Send = self._unsent
        self.on_first: Callable[[], None] = _nothing
        """Called when something is to be sent and nobody delivers the answer yet."""
        self.more = more
        self._pinging: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self.is_begun = False

    def begin(self) -> None:
        """Send the head of the stream, and something from time to time."""
        self._pinging = asyncio.create_task(self._ping())

    async def pause(self) -> None:
        """Send nothing more by itself."""
        if self._pinging is not None:
            self._pinging.cancel()
            await asyncio.wait([self._pinging])

    async def say(self, message: bytes) -> None:
        """Send a message before the answer."""
        await self._open()
        await self.send({"type": "http.response.body", "body": _EVENT % message, "more_body": True})

    async def end(self, text: bytes | None) -> None:
        """Send the answer, if there is one, and close."""
        body = b"" if text is None else _EVENT % text
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    def drop(self) -> None:
        """The client is gone, or has its answer: what is said from now on goes nowhere."""
        self.send = _dropped

    async def _unsent(self, message: Message) -> None:
        """Work that was begun before its connection was at hand waits a moment, and so goes on when it is."""
        self.on_first()
        await asyncio.sleep(0)
        await self.send(message)

    async def _open(self) -> None:
        async with self._beginning:  # its head comes before all else
            if not self.is_begun:
                self.is_begun = True
                await self.send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self.more]})

    async def _ping(self) -> None:
        await self._open()
        while True:
            await self.send({"type": "http.response.body", "body": _PING, "more_body": True})
            await asyncio.sleep(PING_EVERY)


async def _dropped(message: Message) -> None:
    """Nobody waits for it."""


def _nothing() -> None:
    """Somebody is about to deliver it."""
