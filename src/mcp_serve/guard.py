"""The guard at the edge: foreign hosts and pages of other origins; it looks at headers only."""

import contextlib
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(.*)", re.DOTALL)
_MOST_WELCOME = 64
"""Headers that are remembered as welcome, since looking at an address takes as long as the rest of the edge."""

Cause = Literal["host", "origin"]
OnRefusal = Callable[[Cause, Scope], Awaitable[None]]


class Refusal(NamedTuple):
    """Why a request is not let in, by which header."""

    cause: Cause
    status: int
    message: str


async def _ignore(cause: Cause, scope: Scope) -> None:
    """Nobody wants to hear of it."""


class Hosts:
    """The names by which we are asked for: a request must have one of them, and come from no other page.

    Welcome are loopback, the bound address and the allowed names; bound beyond loopback, IP literals and our own name.
    """

    def __init__(self, bound: str, allowed: Iterable[str] | None = None) -> None:
        self._is_beyond_loopback = not is_loopback(bound)
        names = [bound, *(allowed or ())]
        if self._is_beyond_loopback:
            names.append(socket.gethostname())
        self._names = {name.casefold().strip("[]") for name in names}
        self._welcome: set[tuple[bytes, bytes | None]] = set()

    def welcomes(self, host: bytes | None, origin: bytes | None) -> bool:
        """Whether a request with these headers, each given once or not at all, is let in."""
        if (host, origin) in self._welcome:
            return True
        if host is None or self.refusal([host], [] if origin is None else [origin]) is not None:
            return False
        if len(self._welcome) < _MOST_WELCOME:
            self._welcome.add((host, origin))
        return True

    def refusal(self, hosts: Sequence[bytes], origins: Sequence[bytes]) -> Refusal | None:
        """Why a request with these headers is not let in, or None."""
        if len(hosts) != 1 or not _HOST.fullmatch(host := hosts[0].decode("latin-1")):
            return Refusal("host", 400, "Exactly one valid Host header is required")
        if not self._is_us(host):
            return Refusal("host", 421, f"Unknown host {host}; the operator can add it to allowed_hosts")
        if not all(self._is_our_page(origin.decode("latin-1")) for origin in origins):
            return Refusal("origin", 403, "Requests from this origin are not allowed")
        return None

    def _is_our_page(self, origin: str) -> bool:
        match = _ORIGIN.fullmatch(origin)
        return match is not None and self._is_us(match[1])

    def _is_us(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].strip("[]").casefold().removesuffix(".")
        if name in self._names or is_loopback(name):
            return True
        return self._is_beyond_loopback and _is_address(name)


class Guard:
    """Lets in what its hosts welcome.

    `on_refusal` hears of every foreign host and origin before it is answered. Requests for `open_paths` are let in by
    whatever name: what tells nothing and does nothing needs no guard, and probes know few names.
    """

    def __init__(
        self, app: ASGIApp, hosts: Hosts, on_refusal: OnRefusal = _ignore, open_paths: Iterable[str] = ()
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._open_paths = frozenset(open_paths)
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) in self._open_paths:
            await self._app(scope, receive, send)
            return
        hosts = [value for key, value in scope["headers"] if key == b"host"]
        origins = [value for key, value in scope["headers"] if key == b"origin"]
        refusal = self._hosts.refusal(hosts, origins)
        if refusal is not None:
            await self._on_refusal(refusal.cause, scope)
            await refuse(refusal.status, refusal.message)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def refuse(status: int, message: str, code: int = -32600) -> Response:
    """An answer that MCP clients read as a JSON-RPC error and people as a sentence."""
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def _is_address(name: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


def is_loopback(name: str) -> bool:
    """Whether only this machine reaches it."""
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)
