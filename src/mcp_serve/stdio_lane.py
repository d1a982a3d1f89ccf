"""The lane of stdio: plain lines are answered at once, and all others go to the SDK."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp_serve.eager import Work
from mcp_serve.endpoint import Endpoint
from mcp_serve.plain import Plain, parsed, plain_message
from mcp_serve.protocol import LEGACY, MODERN, PROTOCOL_VERSION_META_KEY
from mcp_serve.switch import is_open
from mcp_serve.under_way import Stopped


class StdioLane:
    """Takes lines out of what one client sends; the first request decides which era it speaks, and goes to the SDK."""

    def __init__(self, endpoint: Endpoint, write: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._write = write
        self._era: str | None = None
        self._is_open = is_open()
        self._answering: set[asyncio.Task[None]] = set()

    def takes(self, line: bytes) -> bool:
        """Whether the line is answered here."""
        line_of_endpoint = self._endpoint.line if self._is_open else None
        if line_of_endpoint is None:
            return False
        message = parsed(line)
        if self._era is None:
            self._era = _era(message)
            self._is_open = message is not None  # the SDK may read what we cannot, and choose an era by it
            return False
        request = self._plain(message)
        answer = None if request is None else line_of_endpoint.answer(request, None)
        if request is None or answer is None:
            return False
        task = asyncio.create_task(self._answered(request, answer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return True

    async def finish(self, seconds: float) -> None:
        """Wait for the answers that are still to come."""
        if self._answering:
            await asyncio.wait(self._answering, timeout=seconds)
        for task in list(self._answering):
            task.cancel()

    def _plain(self, message: Any) -> Plain | None:
        if self._era == MODERN:
            request = plain_message(message, MODERN)
        else:
            opened = self._endpoint.sessions.get(None)
            request = None if opened is None or not opened.is_plain else plain_message(message, LEGACY)
            if request is not None and opened is not None:
                request = request._replace(can_answer=opened.can_answer)
        return None if request is None or request.id in self._endpoint.under_way else request

    async def _answered(self, request: Plain, answer: Work[bytes]) -> None:
        try:
            text = await self._endpoint.under_way.follow(request.id, answer())
        except Stopped:  # who cancels a request over stdio wants no answer
            return
        self._write(text.decode() + "\n")


def _era(message: Any) -> str | None:
    """The era of a client whose first request this is; None where it is no request."""
    if type(message) is not dict or "id" not in message or "method" not in message:
        return None
    params = message.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    is_modern = type(meta) is dict and PROTOCOL_VERSION_META_KEY in meta and message["method"] != "initialize"
    return MODERN if is_modern else LEGACY
