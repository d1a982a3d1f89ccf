"""JSON-RPC as MCP writes it; knows what a message says, not how it travels."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from toolgrove.notation import strict_json
from toolgrove.notation.json_value import compact_ascii
from toolgrove.pool.mcp.faults import Nonsense, Rejected

MAX_MESSAGE = 8 * 1024 * 1024
MAX_NESTING = 200
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INVALID_REQUEST = -32600
UNSUPPORTED_VERSION = -32022

Message = dict[str, Any]
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class Front(Protocol):
    """The side that a request is made for: hears what the server logs meanwhile, and may answer what it asks."""

    async def log(self, params: Message) -> None: ...

    def ask(self, request: Message, send: Callable[[Message], Awaitable[None]]) -> bool: ...


class RpcRequest(NamedTuple):
    """A request on its way to a server; `headers` are those that HTTP mirrors from the body.

    `whose` names the agent that it is made for, `front` that one's side.
    """

    id: int
    method: str
    params: Message
    headers: Mapping[str, str] = MappingProxyType({})
    progress: Progress | None = None
    cancellable: bool = True
    front: Front | None = None
    whose: str = ""

    def encoded(self) -> bytes:
        """The request as one JSON-RPC message."""
        return encode({"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params})


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(message: Message) -> bytes:
    """One message as a line of ASCII; ValueError for a number that JSON does not have."""
    text = compact_ascii(message)
    if "NaN" in text or "Infinity" in text:  # in a text, or where only the slower encoder refuses it
        text = _encode(message)
    return text.encode()


def notification(method: str, params: Message | None = None) -> Message:
    """A message that expects no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def decode(raw: bytes) -> Message:
    """A message from text that anybody may have written."""
    try:
        message = strict_json.decode_utf8(raw)
    except UnicodeError:
        raise Nonsense("sent text that is not UTF-8") from None
    except strict_json.TooDeep:
        raise Nonsense("sent a message that is nested too deeply") from None
    except ValueError:
        raise Nonsense("sent a message that is not JSON") from None
    if raw.count(b"{") + raw.count(b"[") > MAX_NESTING and _deeper_than(message, MAX_NESTING):
        raise Nonsense("sent a message that is nested too deeply")
    if not isinstance(message, dict):
        raise Nonsense("sent a message that is not an object")
    return message


def _deeper_than(value: Any, room: int) -> bool:
    level = [value]
    for _ in range(room):
        level = [item for one in level for item in _children(one) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')


def likely_id(raw: bytes) -> int | None:
    """The id of an answer that cannot be read, where it stands at either end of it."""
    found = _ID.search(raw[:200]) or _ID.search(raw[-200:])
    return int(found.group(1)) if found else None


def outcome(message: Message) -> Message:
    """The result of an answer; raises Rejected for an error, Nonsense where there is neither."""
    error = message.get("error")
    if error is not None:
        raise _rejection(error)
    result = message.get("result")
    if not isinstance(result, dict):
        raise Nonsense("sent an answer without a result")
    return result


def _rejection(error: Any) -> Rejected | Nonsense:
    if not isinstance(error, dict):
        return Nonsense("sent an answer without a result")
    code, text = error.get("code"), error.get("message")
    return Rejected(code if isinstance(code, int) else -32603, text if isinstance(text, str) else "")


def reply(message: Message) -> Message:
    """What we say to a request of the server: we are alive, and announced nothing else."""
    head = {"jsonrpc": "2.0", "id": message.get("id")}
    if message.get("method") == "ping":
        return {**head, "result": {}}
    return refusal(message, METHOD_NOT_FOUND, "Method not found")


def refusal(message: Message, code: int, text: str) -> Message:
    """What we say to a request of the server that is not answered."""
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}


def params_of(message: Message) -> Message:
    """The parameters of a message, whatever it has in their place."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


async def relay(progress: Progress, params: Any) -> None:
    """Pass on a progress notification, if it says anything."""
    done, total, text = params.get("progress"), params.get("total"), params.get("message")
    if _is_number(done):
        await progress(done, total if _is_number(total) else None, text if isinstance(text, str) else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
