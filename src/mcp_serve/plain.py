"""Which way a request takes: what is plain takes the lane, and everything else goes to the SDK.

Plain is a single request of a few methods, in a form that leaves nothing to decide, whose answer needs no stream. What
is odd in any way is not plain, so the lane itself never refuses anything: the SDK does, in its own words.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import jiter

from mcp_serve import sdk
from mcp_serve.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LEGACY,
    MODERN,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_serve.table import Json

MAX_BODY = 4 * 1024 * 1024
METHODS = {
    MODERN: frozenset(("tools/call", "tools/list", "server/discover")),
    LEGACY: frozenset(("tools/call", "tools/list", "ping")),
}
"""`initialize` is never plain: it opens a session, which the SDK keeps."""
_PARAMS = {
    "tools/call": frozenset(("name", "arguments", "_meta")),
    "tools/list": frozenset(("cursor", "_meta")),
    "server/discover": frozenset(("_meta",)),
    "ping": frozenset(("_meta",)),
}
_RESERVED = "io.modelcontextprotocol/"
_ENVELOPE = frozenset((PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY))
_SAFE_ID = 2**53
_ABSENT = ()
"""No value of JSON."""
_CLIENTS: dict[str, bool | None] = {}
"""Whether a client can be asked, by what it says about itself; None for one that the SDK must judge."""
_SIMPLE: tuple[Json, ...] = ({}, {"elicitation": {}})
"""What a client can do of which the SDK need not be asked."""
_MOST_CLIENTS = 256
_LONGEST_CLIENT = 4_096

Headers = Iterable[tuple[bytes, bytes]]


class Hearing(NamedTuple):
    """What a client of the older era hears of a tool's log before the answer; `level` is the one that it asked for."""

    level: str | None
    log: Callable[[str, Any, str], Awaitable[None]]


class Plain(NamedTuple):
    """A plain request, as its client wrote it; `session` is that of an HTTP client of the older era.

    `say` sends such a client a message before the answer, and `hearing` what its session wants to hear.
    """

    id: int | str
    method: str
    params: Json
    modern: bool
    can_answer: bool = False
    session: str | None = None
    say: Callable[[bytes], Awaitable[None]] | None = None
    hearing: Hearing | None = None

    @property
    def meta(self) -> Json | None:
        """What the client says beside its request."""
        meta: Json | None = self.params.get("_meta")
        return meta


class Head(NamedTuple):
    """The part of a plain HTTP request that stands in front of its body."""

    version: str
    method: str | None
    name: str | None
    session: str | None
    length: int
    given: dict[bytes, bytes]
    """All of its headers, each of which is given once."""


def plain_head(method: str, headers: list[tuple[bytes, bytes]]) -> Head | None:
    """What the headers say, or None where the request is not plain, whatever its body is."""
    if method != "POST":
        return None
    given = dict(headers)
    length = given.get(b"content-length", b"")
    if (
        len(given) != len(headers)  # one that is given twice can be read in two ways
        or b"transfer-encoding" in given
        or not length.isdigit()
        or len(length) > len(str(MAX_BODY))
        or int(length) > MAX_BODY
        or given.get(b"content-type") not in (b"application/json", b"application/json; charset=utf-8")
    ):
        return None
    size = int(length)
    takes_json, takes_events = _accepted(given.get(b"accept", b""))
    version = given.get(b"mcp-protocol-version")
    if version == b"2026-07-28" and takes_json:
        return Head(MODERN, _word(given.get(b"mcp-method")), _word(given.get(b"mcp-name")), None, size, given)
    session = given.get(b"mcp-session-id")
    if version == b"2025-11-25" and takes_json and takes_events and session is not None and session.isascii():
        return Head(LEGACY, None, None, session.decode(), size, given)
    return None


def plain_body(head: Head, body: bytes) -> Plain | None:
    """The request in the body behind this head, or None where the two together are not plain."""
    request = plain_message(parsed(body), head.version)
    if request is None:
        return None
    if head.version == LEGACY:
        return request._replace(session=head.session)
    if head.method != request.method or (request.method == "tools/call" and head.name != request.params["name"]):
        return None
    return request


def plain_message(message: Any, version: str) -> Plain | None:
    """The request that a message is, or None where it is not plain in this version of the protocol."""
    if type(message) is not dict or message.get("jsonrpc") != "2.0" or "id" not in message:
        return None
    number, method, params = message["id"], message.get("method"), message.get("params")
    if params is None and version == LEGACY and "params" not in message:
        message, params = {**message, "params": {}}, {}
    if (
        len(message) != 4
        or not (type(number) is str or (type(number) is int and -_SAFE_ID < number < _SAFE_ID))
        or type(method) is not str
        or method not in METHODS[version]
        or type(params) is not dict
        or not params.keys() <= _PARAMS[method]
        or not _is_asked_rightly(method, params)
    ):
        return None
    can_answer = _told(params, version)
    return None if can_answer is None else Plain(number, method, params, version == MODERN, can_answer)


def parsed(text: bytes) -> Any | None:
    """The JSON in a body, or None where it is not JSON, or two readers could read it differently."""
    try:
        return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError:
        return None


def _word(header: bytes | None) -> str | None:
    """What a header says in so many letters; one that had to be encoded is left to the SDK."""
    return None if header is None or not header.isascii() or header.startswith(b"=?") else header.decode()


def _is_asked_rightly(method: str, params: Json) -> bool:
    if method == "tools/call":
        return type(params.get("name")) is str and type(params.get("arguments", {})) is dict
    return type(params.get("cursor", "")) is str


def _told(params: Json, version: str) -> bool | None:
    """Whether the client says here that it can be asked; None where its `_meta` holds more than the lane knows."""
    if "_meta" not in params:
        return None if version == MODERN else False
    meta = params["_meta"]
    if type(meta) is not dict or "progressToken" in meta:
        return None
    if meta.keys() != _ENVELOPE:
        others = meta.keys() - _ENVELOPE
        if others and any(key.startswith(_RESERVED) for key in others):
            return None
        if version == LEGACY:
            return False if len(others) == len(meta) else None
    elif version == LEGACY:
        return None
    if meta.get(PROTOCOL_VERSION_META_KEY) != version or CLIENT_CAPABILITIES_META_KEY not in meta:
        return None
    return _can_answer(meta.get(CLIENT_INFO_META_KEY, _ABSENT), meta[CLIENT_CAPABILITIES_META_KEY])


def _can_answer(client: Any, capabilities: Any) -> bool | None:
    """What the SDK makes of a client's word about itself, which is the same at each of its requests."""
    if _is_simple(client) and capabilities in _SIMPLE:
        return bool(capabilities)
    said = repr((client, capabilities))
    if said in _CLIENTS:
        return _CLIENTS[said]
    if len(said) > _LONGEST_CLIENT or not sdk.is_loaded():
        return None
    told: bool | None = sdk.forms().can_answer({} if client is _ABSENT else {"client": client}, capabilities)
    if len(_CLIENTS) >= _MOST_CLIENTS:
        _CLIENTS.clear()
    _CLIENTS[said] = told
    return told


def _is_simple(client: Any) -> bool:
    """Whether a client tells its name and version and nothing else, as most do: the SDK need not be asked."""
    return (
        type(client) is dict
        and len(client) == 2
        and type(client.get("name")) is str
        and type(client.get("version")) is str
    )


@lru_cache(maxsize=64)
def _accepted(accept: bytes) -> tuple[bool, bool]:
    """Whether the client takes JSON, and events; what is not clearly so is not."""
    kinds = [kind.strip() for kind in accept.split(b",")]
    return b"application/json" in kinds, b"text/event-stream" in kinds
