"""Answers as bytes, as the SDK writes them."""

import json
import logging
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any

from pydantic_core import to_json, to_jsonable_python

from mcp_serve import sdk
from mcp_serve.answer import Answer, Told
from mcp_serve.plain import Plain
from mcp_serve.protocol import INTERNAL_ERROR, REQUEST_CANCELLED, SERVER_INFO_META_KEY
from mcp_serve.table import Json

log = logging.getLogger(__name__)
_ASCII = json.JSONEncoder(separators=(",", ":"))
_parts = c_make_encoder(None, _ASCII.default, encode_basestring_ascii, None, ":", ",", False, False, True)
"""What `_ASCII` makes anew for each value."""
CALLED: dict[bool, Json] = {True: {"content": [], "resultType": "complete"}, False: {"content": []}}
"""What the SDK writes around a call without a result, in the newer era and in the older."""
LISTED: dict[bool, Json] = {
    True: {"cacheScope": "private", "nextCursor": None, "resultType": "complete", "tools": [], "ttlMs": 0},
    False: {"nextCursor": None, "tools": []},
}
"""The same around a list without tools; None for what is left out."""


class Writer:
    """Writes the answers of one server; `stamp` is what it says about itself in each of the newer era."""

    def __init__(self, stamp: Json) -> None:
        self._stamp = {SERVER_INFO_META_KEY: stamp}
        self._told = {modern: self._around_told(modern) for modern in (True, False)}

    def result(self, answer: Answer, *, modern: bool) -> Json:
        """The result of a call, in its envelope."""
        if isinstance(answer, dict):
            parts = {**CALLED[modern], **answer}
        else:
            parts = sdk.forms().result_of(answer, modern=modern)
        return self.stamped(parts) if modern else parts

    def stamped(self, result: Json) -> Json:
        """A result that says which server gave it; the SDK says so last."""
        said = result.get("_meta")
        return {**result, "_meta": {**said, **self._stamp} if said else self._stamp}

    def called(self, request: Plain, answer: Answer) -> bytes:
        """The answer to a call."""
        modern = request.modern
        if type(answer) is Told:
            text = answer.text
            result = self._told[modern] % (encode_basestring_ascii(text).encode(), text.encode())
        else:
            result = encoded(self.result(answer, modern=modern), modern=modern)
        return self.framed(request, result)

    def given(self, request: Plain, result: Json) -> bytes:
        """The answer of the newer era with a result that needs no more than to say which server gave it."""
        return self.framed(request, encoded(self.stamped(result), modern=True))

    def _around_told(self, modern: bool) -> bytes:
        """What stands around the two texts of a result that is told."""
        empty = encoded(self.result(Told({}, ""), modern=modern), modern=modern).replace(b"%", b"%%")
        for place in (b'"text":""', b'"structuredContent":{}'):
            empty = empty.replace(place, place.partition(b":")[0] + b":%b", 1)
        return empty

    def framed(self, request: Plain, result: bytes) -> bytes:
        """The answer to a request, around a result that is written already."""
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_number(request), result)


def encoded(value: Any, *, modern: bool) -> bytes:
    """JSON as the SDK writes it: in ASCII in the newer era."""
    if not modern:
        return to_json(value)
    try:
        return "".join(_parts(value, 0)).encode()
    except TypeError:  # a value that only pydantic knows how to write
        return _ASCII.encode(to_jsonable_python(value)).encode()


def logged(level: str, data: Any, logger: str) -> bytes:
    """A message of a tool's log, for a client of the older era."""
    params = {"level": level, "logger": logger, "data": data}
    return to_json({"jsonrpc": "2.0", "method": "notifications/message", "params": params})


def failed(request: Plain) -> bytes:
    """The answer to a request that met a fault of ours; what it was is in the log."""
    error = {"code": INTERNAL_ERROR, "message": "Internal server error"}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_number(request), _ASCII.encode(error).encode())


def cancelled(request: Plain) -> bytes:
    """The answer to a request of the older era over HTTP that its client cancelled."""
    error = {"code": REQUEST_CANCELLED, "message": "Request cancelled"}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_number(request), _ASCII.encode(error).encode())


def _number(request: Plain) -> bytes:
    number = request.id
    return b"%d" % number if isinstance(number, int) else encoded(number, modern=request.modern)
