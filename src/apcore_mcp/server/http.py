"""MCP over HTTP: the guard at the edge, the routes of both transports, and the health check."""

import asyncio
import contextlib
import ipaddress
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apcore_mcp.server.endpoint import Endpoint

BODY = "apcore_mcp.body"
BAD_JSON = "Parse error: the body must be one JSON text, moderately nested, with no key given twice"

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", re.ASCII)


class Guard:
    """Refuses foreign hosts and pages, and bodies that two readers could read differently.

    Welcome are loopback, the bound address and the allowed names; bound beyond loopback, IP literals and our own name.
    """

    def __init__(self, app: ASGIApp, bound: str, allowed: list[str] | None) -> None:
        self._app, self._beyond_loopback = app, not _is_loopback(bound)
        own = [socket.gethostname()] if self._beyond_loopback else []
        self._names = {name.casefold().strip("[]") for name in (bound, *own, *(allowed or ()))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        kinds = b" ".join(value for key, value in scope.get("headers", ()) if key == b"content-type").lower()
        if refusal is None and scope.get("method") == "POST" and b"json" in kinds:
            try:
                scope[BODY] = await Request(scope, receive).body()
                receive = _replay(scope[BODY], receive)
                _STRICT.decode(scope[BODY].decode())
            except (ValueError, RecursionError, ClientDisconnect):
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
        return name in self._names or bool(local := _is_loopback(name)) or (self._beyond_loopback and local is not None)


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


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=int)  # int refuses NaN


def refuse(status: int, message: str, code: int = -32600) -> Response:
    """An answer that MCP clients read as a JSON-RPC error and people as a sentence."""
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def _is_loopback(name: str) -> bool | None:
    """Of an address or `localhost`; None for any other name."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name).is_loopback
    return True if name == "localhost" else None


def _owned(scope: Scope) -> Scope:
    """The request by a user of the SDK's own kind: only for those does a session belong to who opened it."""
    user: Any = scope.get("user")
    if user is None or not user.is_authenticated or isinstance(user, AuthenticatedUser):
        return scope
    return {**scope, "user": AuthenticatedUser(AccessToken(token="", client_id=user.display_name, scopes=[]))}


class StreamableHTTP:
    """`/mcp`. Stateless requests that want no progress are answered as plain JSON, a third faster than as a stream."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._streams = StreamableHTTPSessionManager(endpoint.server)
        self._json = StreamableHTTPSessionManager(endpoint.server, json_response=True)
        self.routes: list[BaseRoute] = [Route("/mcp", self)]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._streams.run(), self._json.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Request(scope).headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        if version in HANDSHAKE_PROTOCOL_VERSIONS or b'"progressToken"' in scope.get(BODY, b""):
            await self._streams.handle_request(_owned(scope), receive, send)
        else:
            await unless_gone(receive, self._json.handle_request(scope, receive, send))


class Sse:
    """The deprecated transport: a stream at `/sse`, messages to `/messages/`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._server = endpoint.server
        self._messages = SseServerTransport("/messages/")
        post = Mount("/messages/", app=lambda scope, *io: self._messages.handle_post_message(_owned(scope), *io))
        self.routes: list[BaseRoute] = [Route("/sse", self, methods=["GET"]), post]

    running = staticmethod(contextlib.nullcontext)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._messages.connect_sse(_owned(scope), receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())


async def unless_gone(receive: Receive, work: Awaitable[Any]) -> Any:
    """The result of the work, or None once its client went away; the SDK watches only streams."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.append(request.cancel())

    request, gone = cast("Any", asyncio.current_task()), list[bool]()
    # Most answers are quicker than this timer; one that is not ends the watch too, as receive() does then.
    timer = asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(watch()))
    try:
        return await work
    except asyncio.CancelledError:
        if not gone or request.uncancel():
            raise
    finally:
        timer.cancel()


def health(count: Callable[[], int]) -> Route:
    started = time.monotonic()

    async def answer(request: Request) -> Response:
        return JSONResponse({"status": "ok", "module_count": count(), "uptime_seconds": time.monotonic() - started})

    return Route("/health", answer)
