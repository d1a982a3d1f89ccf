"""The lane: plain requests are answered at once, and everything else passes on, as if nobody had looked at it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_serve.calls import User
from mcp_serve.late import Stream, send_in_time
from mcp_serve.plain import MAX_BODY, Plain, plain_body, plain_head
from mcp_serve.presence import unless_gone
from mcp_serve.switch import is_open
from mcp_serve.whole import send_whole


class Line(Protocol):
    """What answers plain requests at one address."""

    def answer(self, request: Plain, user: User | None) -> Awaitable[bytes] | None:
        """The answer, once it is there; None where the request must go to the SDK."""
        ...


Find = Callable[[Scope], Line | None]
"""Finds the line at the address of a request, for whoever asks; None where the app must answer."""


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
        request = None if body is None else plain_body(head, body)
        stream: Stream | None = None
        if request is not None and request.session is not None:
            stream = Stream(send, (b"mcp-session-id", request.session.encode()))
            request = request._replace(say=stream.say)
        answer = None if request is None else line.answer(request, user_of(scope))
        if request is None or answer is None:
            return await self._app(scope, _replay(messages, receive), send)
        if stream is not None:
            return await send_in_time(scope, receive, stream, answer)
        text = await unless_gone(receive, answer)
        if text is not None:
            await send_whole(scope, send, text)


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


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = messages[::-1]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def user_of(scope: Scope) -> User | None:
    """The user that an authentication middleware in front of us put on the request."""
    user = scope.get("user")
    if user is None or not user.is_authenticated:
        return None
    return User(user.display_name, tuple(scope["auth"].scopes))
