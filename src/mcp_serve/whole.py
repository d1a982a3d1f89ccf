"""An answer that is sent in one piece; where our own HTTP server is underneath, in one write."""

from collections.abc import Iterable

from starlette.types import Scope, Send

WRITE = "mcp_serve.whole"
"""The ASGI extension that takes a body and further headers at once."""
Header = tuple[bytes, bytes]


async def send_whole(scope: Scope, send: Send, body: bytes, *more: Header) -> None:
    """Answer 200 with this JSON; `more` are further headers."""
    ours = scope.get("extensions", {}).get(WRITE)
    if ours is not None:
        await ours["write"](body, more)
        return
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def on_the_wire(first: bytes, body: bytes, more: Iterable[Header]) -> bytes:
    """The same answer as HTTP/1.1 has it; `first` are the lines of headers that every answer has."""
    form = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\ncontent-type: application/json\r\n%b\r\n%b"
    return form % (first, len(body), lines(more) if more else b"", body)


def lines(headers: Iterable[Header]) -> bytes:
    """Headers as they are written."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
