"""Single requests to addresses that a server names for its logins: checked, bounded, and without redirects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio

from toolgrove.notation import strict_json
from toolgrove.pool.host import names_loopback
from toolgrove.pool.mcp.connection import Address, Connection, KeptConnections, Reach
from toolgrove.pool.mcp.faults import Broken, Misconfigured, Nonsense, Unsent
from toolgrove.pool.mcp.request_head import lines_of
from toolgrove.types import Clock

PATIENCE = 20.0
MAX_BODY = 256 * 1024
_OURS = frozenset(("accept-encoding", "connection", "content-length", "host", "transfer-encoding", "user-agent"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came back; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def content(self) -> dict[str, Any]:
        """The JSON object in the body; Nonsense if it is none."""
        try:
            content = strict_json.decode(self.body.decode())
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise Nonsense("has an authorization server whose answer is no JSON object")
        return content


class Web:
    """Asks one question at a time, each over a connection of its own."""

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock

    async def get(self, url: str) -> Reply:
        """The answer to a plain question."""
        return await self._ask(b"GET", url, {})

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Reply:
        """The answer to a form."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self._ask(b"POST", url, {**kind, **headers}, urlencode(form).encode())

    async def post_json(self, url: str, content: Mapping[str, Any]) -> Reply:
        """The answer to a JSON object."""
        return await self._ask(b"POST", url, {"content-type": "application/json"}, json.dumps(content).encode())

    async def head_of(self, method: bytes, url: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """How the answer to a request begins; the rest is not read."""
        return await self._ask(method, url, headers, body, whole=False)

    async def _ask(
        self, method: bytes, url: str, headers: Mapping[str, str], body: bytes = b"", *, whole: bool = True
    ) -> Reply:
        if not is_private_way(url):
            raise Misconfigured("names an address for logins that is neither https nor on this machine")
        try:
            with anyio.fail_after(PATIENCE):
                return await self._exchange(method, url, headers, body, whole=whole)
        except TimeoutError:
            raise Unsent("has an authorization server that did not answer in time") from None
        except (Broken, Unsent) as fault:
            raise Unsent(f"has an authorization server that {fault}") from None

    async def _exchange(
        self, method: bytes, url: str, headers: Mapping[str, str], body: bytes, *, whole: bool
    ) -> Reply:
        connections = KeptConnections(Address.of(url), self._reach, self._clock)
        where = connections.address
        pairs = [(b"host", where.authority), (b"accept-encoding", b"identity"), (b"user-agent", b"toolgrove")]
        told = {"accept": "application/json", **{name.lower(): value for name, value in headers.items()}}
        told = {name: value for name, value in told.items() if name not in _OURS}
        connection = await connections.dial()
        try:
            pairs += [(name.encode("ascii"), value.encode("latin-1")) for name, value in told.items()]
            response = await connection.ask(method, where.target, lines_of(pairs), body)
            read = await _body(connection) if whole else b""
        except ValueError:  # of an encoding as well
            raise Misconfigured("has a header that HTTP cannot carry") from None
        finally:
            connection.drop()
        heads = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in response.headers}
        return Reply(status=response.status_code, headers=heads, body=read)


async def _body(connection: Connection) -> bytes:
    parts = bytearray()
    while (part := await connection.read()) is not None:
        parts += part
        if len(parts) > MAX_BODY:
            raise Nonsense(f"has an authorization server whose answer is larger than {MAX_BODY // 1024} KiB")
    return bytes(parts)


def is_private_way(url: str) -> bool:
    """Whether nobody between us and an address can read along: https, or a way that stays on this machine."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return False
    return scheme == "https" or (scheme == "http" and names_loopback(url))
