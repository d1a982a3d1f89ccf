"""Writes the head of a request; nothing that goes into it can end a line or begin another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_TARGET = re.compile(rb"[!-~]+")


def head_of(method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]], size: int | None) -> bytes:
    """The head of a request with a body of this size, or with none; ValueError for what HTTP cannot carry."""
    if _TARGET.fullmatch(target) is None:
        raise ValueError("HTTP cannot carry this target")
    lines = [b"%b %b HTTP/1.1" % (method, target), *map(_line, headers)]
    if size is not None:
        lines.append(b"content-length: %d" % size)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _line(header: tuple[bytes, bytes]) -> bytes:
    name, value = header
    if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
        raise ValueError("HTTP cannot carry this header")
    return b"%b: %b" % header
