"""Writes the head of a request; nothing that goes into it can end a line or begin another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_TARGET = re.compile(rb"[!-~]+")


def head_of(method: bytes, target: bytes, lines: bytes, size: int | None) -> bytes:
    """The head of a request with a body of this size, or with none; ValueError for what HTTP cannot carry."""
    if _TARGET.fullmatch(target) is None:
        raise ValueError("HTTP cannot carry this target")
    length = b"" if size is None else b"content-length: %d\r\n" % size
    return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (method, target, lines, length)


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The lines of headers; ValueError for what HTTP cannot carry."""
    return b"".join(map(_line, headers))


def _line(header: tuple[bytes, bytes]) -> bytes:
    name, value = header
    if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
        raise ValueError("HTTP cannot carry this header")
    return b"%b: %b\r\n" % header
