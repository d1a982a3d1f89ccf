"""Refuses bodies that are too long, and reads the others whole."""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_serve.replay import replay

MAX_BODY = 4 * 1024 * 1024


class BodyLimit:
    """Middleware: lets a body of at most so many bytes pass."""

    def __init__(self, app: ASGIApp, most: int = MAX_BODY) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        declared = [value for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
        size, messages = 0, list[Message]()
        is_long = any(int(value) > self._most for value in declared)
        while not is_long and (not messages or messages[-1].get("more_body", False)):
            messages.append(await receive())
            size += len(messages[-1].get("body", b""))
            is_long = size > self._most
        if is_long:
            return await PlainTextResponse("Request body too large", 413)(scope, receive, send)
        await self._app(scope, replay(messages, receive), send)
