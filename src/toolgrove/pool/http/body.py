"""The body of a request: JSON, a form, a form with files, or a text."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from toolgrove.errors import InvalidArgument
from toolgrove.pool.http.operation import Body
from toolgrove.pool.http.parameter_style import json_text, pairs_of, scalar_text

FILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A file: its content as text, or as base64 if it is no text.",
    "properties": {
        "filename": {"type": "string", "maxLength": 255},
        "contentType": {"type": "string", "maxLength": 127},
        "text": {"type": "string"},
        "base64": {"type": "string"},
    },
    "oneOf": [{"required": ["text"]}, {"required": ["base64"]}],
    "additionalProperties": False,
}
"""What an agent says where a document wants a file."""


def encoded(value: Any, body: Body) -> tuple[bytes, str]:
    """The bytes of a body, and the type that the server is told."""
    argument, kind = body.argument, body.content_type
    if body.encoding == "json":
        return json_text(value, argument).encode(), kind
    if body.encoding == "text":
        return _utf8(scalar_text(value, argument), argument), f"{kind}; charset=utf-8"
    if body.encoding == "file":
        content, _, told = _file(value, argument)
        return content, told or kind
    if not isinstance(value, dict):
        raise InvalidArgument(f"Argument {argument!r} has to be an object.", reason="schema", path=argument)
    if body.encoding == "multipart":
        return _multipart(value, body)
    styles = dict(body.styles)
    pairs = [
        pair
        for name, item in value.items()
        for pair in sound(pairs_of(name, item, argument, styles.get(name, "repeat")), argument)
    ]
    return urlencode(pairs).encode(), kind


def sound(pairs: Iterator[tuple[str, str]], argument: str) -> list[tuple[str, str]]:
    """The pairs, provided that UTF-8 can carry them."""
    whole = list(pairs)
    _utf8("".join(part for pair in whole for part in pair), argument)
    return whole


def _utf8(text: str, argument: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"Argument {argument!r} holds half a character (a lone surrogate). Send well-formed text.",
            reason="not_json",
            path=argument,
        ) from None


def _multipart(value: dict[str, Any], body: Body) -> tuple[bytes, str]:
    parts: list[bytes] = []
    types = dict(body.types)
    for name, item in value.items():
        path = f"{body.argument}.{name}"
        for one in item if isinstance(item, list) else [item]:
            if one is not None:
                parts.append(_part(name, one, path, types.get(name, ""), is_file=name in body.files))
    whole = b"\0".join(parts)
    boundary = f"toolgrove-{hashlib.sha256(whole).hexdigest()[:32]}"
    lines = [f"--{boundary}\r\n".encode() + part + b"\r\n" for part in parts]
    return b"".join(lines) + f"--{boundary}--\r\n".encode(), f"{body.content_type}; boundary={boundary}"


def _part(name: str, value: Any, path: str, kind: str, *, is_file: bool) -> bytes:
    filename = ""
    if is_file:
        content, filename, told = _file(value, path)
        filename, kind = filename or "file", told or kind or "application/octet-stream"
    elif isinstance(value, dict):
        content, kind = json_text(value, path).encode(), kind or "application/json"
    else:
        content = _utf8(scalar_text(value, path), path)
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    head += f'; filename="{_quoted(filename)}"' if filename else ""
    head += f"\r\nContent-Type: {_line(kind, path)}" if kind else ""
    return _utf8(head, path) + b"\r\n\r\n" + content


def _file(value: Any, path: str) -> tuple[bytes, str, str]:
    """Content, name and type of a file as an agent sends it."""
    if not isinstance(value, dict) or ("text" in value) == ("base64" in value):
        raise InvalidArgument(
            f"Argument {path!r} is a file: send an object with either text or base64.", reason="schema", path=path
        )
    if "text" in value:
        content = _utf8(str(value["text"]), path)
    else:
        try:
            content = base64.b64decode(str(value["base64"]), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidArgument(f"Argument '{path}.base64' is not base64.", reason="schema", path=path) from None
    kind = str(value.get("contentType") or "")
    return content, str(value.get("filename") or ""), _line(kind, path)


def _line(text: str, path: str) -> str:
    if not text.isascii() or not (text.isprintable() or not text):
        raise InvalidArgument(f"Argument '{path}.contentType' has to be a media type.", reason="schema", path=path)
    return text


def _quoted(text: str) -> str:
    """As browsers write a name, so that it cannot end its line or its quotes."""
    return text.replace("\\", "%5C").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
