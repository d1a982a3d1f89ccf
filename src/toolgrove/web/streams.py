"""The streams of events that are open, so that we can end them before somebody else has to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgrove.web.http_json import problem
from toolgrove.web.identity import Principal


@dataclass(eq=False, kw_only=True, slots=True)
class _Stream:
    user: Principal | None
    listens: bool
    """Whether it only announces changes, so that no caller waits for it to end."""
    cancel: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_whole: bool = False


class Streams:
    """Every response of server-sent events under way; other answers are short, or useless if they are cut.

    An app that may answer with a stream asks to be followed; a plain call does not, since it would gain nothing.
    """

    def __init__(self) -> None:
        self._open: set[_Stream] = set()
        self.is_closed = False
        self._left = anyio.Event()

    @property
    def users(self) -> set[Principal]:
        """The holders of the tokens with which streams were opened."""
        return {stream.user for stream in self._open if stream.user is not None}

    def end(self, user: Principal) -> int:
        """End all streams of one token; how many there were."""
        return _cancelled(stream for stream in self._open if stream.user == user)

    async def close(self, seconds: float) -> None:
        """Take no new streams, end those that only listen at once, and the others after some time."""
        self.is_closed = True
        _cancelled(stream for stream in self._open if stream.listens)
        with anyio.move_on_after(seconds):
            await self._emptied()
        _cancelled(self._open)
        with anyio.move_on_after(seconds):
            await self._emptied()

    async def follow(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let an app answer a request; if that is a stream, it can be ended from now on."""
        if self.is_closed:
            refusal = problem(503, "internal", "The gateway is shutting down. Ask again when it is back.")
            await refusal(scope, receive, send)
            return
        stream = _Stream(user=scope.get("user"), listens=scope["method"] == "GET")

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and _tells_events(message):
                self._open.add(stream)
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                stream.is_whole = True
            await send(message)

        try:
            with stream.cancel:
                await app(scope, receive, watched)
        finally:
            self._open.discard(stream)
            self._left.set()
        if stream.cancel.cancelled_caught and not stream.is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _emptied(self) -> None:
        while self._open:
            self._left = anyio.Event()
            await self._left.wait()


class FollowedResponse(Response):
    """An answer that can be ended early, since its stream is followed."""

    def __init__(self, response: Response, streams: Streams) -> None:
        super().__init__(status_code=response.status_code)
        self._response, self._streams = response, streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.follow(self._response, scope, receive, send)


def _cancelled(streams: Iterable[_Stream]) -> int:
    chosen = list(streams)
    for stream in chosen:
        stream.cancel.cancel()
    return len(chosen)


def _tells_events(start: Message) -> bool:
    headers = start.get("headers", ())
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)
