"""The lane: plain requests are answered at once, and everything else passes on, as if nobody had looked at it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_serve.calls import User
from mcp_serve.eager import Work
from mcp_serve.late import Stream, send_in_time
from mcp_serve.plain import MAX_BODY, Head, Plain, plain_body, plain_head
from mcp_serve.presence import unless_gone
from mcp_serve.replay import replay
from mcp_serve.switch import is_open
from mcp_serve.whole import Header, send_whole


class Line(Protocol):
    """What answers plain requests at one address."""

    def answer(self, request: Plain, user: User | None) -> Work[bytes] | None:
        """What makes the answer; None where the request must go to the SDK."""
        ...


Find = Callable[[Scope], Line | None]
"""Finds the line at the address of a request, for whoever asks; None where the app must answer."""


class Reply(NamedTuple):
    """What answers a plain request, and for a client of the older era the stream that the answer may become."""

    answer: Work[bytes]
    stream: Stream | None

    @property
    def more(self) -> tuple[Header, ...]:
        """Further headers of the answer."""
        return () if self.stream is None else self.stream.more

    async def deliver(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, as an ASGI app."""
        if self.stream is not None:
            self.stream.send = send
            return await send_in_time(scope, receive, self.stream, self.answer())
        text = await unless_gone(receive, self.answer())
        if text is not None:
            await send_whole(scope, send, text)


def reply(head: Head, body: bytes, line: Line, user: User | None) -> Reply | None:
    """What answers a request on its line; None where it is not plain, or not plain there."""
    request = plain_body(head, body)
    if request is None:
        return None
    stream: Stream | None = None
    if request.session is not None:
        stream = Stream((b"mcp-session-id", request.session.encode()))
        request = request._replace(say=stream.say)
    answer = line.answer(request, user)
    return None if answer is None else Reply(answer, stream)


class Lane:
    """Middleware: stands behind all that can refuse a request by its head, and in front of all that reads its body."""

    def __init__(self, app: ASGIApp, find: Find) -> None:
        self._app = app
        self._find = find
        self._is_open = is_open()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_open:
            return await self._app(scope, receive, send)
        head = plain_head(scope["method"], scope["headers"])
        line = None if head is None else self._find(scope)
        if head is None or line is None:
            return await self._app(scope, receive, send)
        messages: list[Message] = []
        body = await _body(receive, messages)
        answering = None if body is None else reply(head, body, line, user_of(scope))
        if answering is None:
            return await self._app(scope, replay(messages, receive), send)
        await answering.deliver(scope, receive, send)


async def _body(receive: Receive, messages: list[Message]) -> bytes | None:
    """The whole body, or None where it is too long or its client went away; `messages` keeps what was received."""
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return None
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join([part.get("body", b"") for part in messages])


def user_of(scope: Scope) -> User | None:
    """The user that an authentication middleware in front of us put on the request."""
    user = scope.get("user")
    if user is None or not user.is_authenticated:
        return None
    return User(user.display_name, tuple(scope["auth"].scopes))
