"""The HTTP edge: which hosts and pages may talk to us, and what counts as a body."""

import contextlib
import ipaddress
import json
import re
import socket
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY = "apcore_mcp.body"
BAD_JSON = "Parse error: the body must be one JSON text, moderately nested, with no key given twice"

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", re.ASCII)


class Guard:
    """Refuses foreign hosts and pages, and bodies that two readers could read differently.

    Welcome are loopback, the bound address and the allowed names; bound beyond loopback, IP literals and our own name.
    """

    def __init__(self, app: ASGIApp, bound: str, allowed: Iterable[str] | None) -> None:
        self._app, self._beyond_loopback = app, not _is_loopback(bound)
        own = [socket.gethostname()] if self._beyond_loopback else []
        self._names = {name.casefold().strip("[]") for name in (bound, *own, *(allowed or ()))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        if refusal is None and scope.get("method") == "POST":
            scope[BODY] = await Request(scope, receive).body()
            receive = _replay(scope[BODY], receive)
            try:
                json.loads(scope[BODY], object_pairs_hook=_unique, parse_constant=int)  # int refuses NaN
            except (ValueError, RecursionError):
                refusal = refuse(400, BAD_JSON, code=-32700)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> Response | None:
        hosts = [value.decode("latin-1") for key, value in headers if key == b"host"]
        origins = [value.decode("latin-1") for key, value in headers if key == b"origin"]
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            return refuse(400, "Exactly one valid Host header is required")
        if not self._is_us(hosts[0]):
            return refuse(421, f"Unknown host {hosts[0]}; the operator can add it to allowed_hosts")
        if not all(re.match("https?://", origin) and self._is_us(origin.partition("://")[2]) for origin in origins):
            return refuse(403, "Requests from this origin are not allowed")
        return None

    def _is_us(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        name = match[1].strip("[]").casefold().removesuffix(".") if match else ""
        local = _is_loopback(name)
        return name in self._names or bool(local) or (self._beyond_loopback and local is not None)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def refuse(status: int, message: str, code: int = -32600) -> Response:
    """An answer that MCP clients read as a JSON-RPC error and people as a sentence."""
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def _is_loopback(name: str) -> bool | None:
    """Of an address or `localhost`; None for any other name."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name).is_loopback
    return True if name == "localhost" else None
