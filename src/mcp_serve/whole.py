"""An answer that is sent in one piece; where our own HTTP server is underneath, in one write."""

from starlette.types import Scope, Send

WRITE = "mcp_serve.whole"
"""The ASGI extension that takes a head and a body at once."""
_TYPE = (b"content-type", b"application/json")


Header = tuple[bytes, bytes]


async def send_whole(scope: Scope, send: Send, body: bytes, *more: Header) -> None:
    """Answer 200 with this JSON; `more` are further headers."""
    headers = [(b"content-length", b"%d" % len(body)), _TYPE, *more]
    ours = scope.get("extensions", {}).get(WRITE)
    if ours is not None:
        await ours["write"](headers, body)
        return
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
