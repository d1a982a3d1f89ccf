"""How a value stands in a row: as JSON text with a checksum, since SQLite itself has none."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

_CHUNK = 10_000


class Damaged(Exception):
    """A row, or a table, is not what was written."""


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode
"""The text of a value: pure ASCII, so that no lone surrogate meets SQLite."""


def checksum(body: str) -> int:
    """The checksum of a text."""
    return zlib.crc32(body.encode())


def key(text: str) -> str:
    """A text as a key column holds it; what UTF-8 cannot carry is escaped."""
    if text.isascii() and text[:1] != "\0":
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "\0" + encode(text)
    return "\0" + encode(text) if text[:1] == "\0" else text


def decode_all(table: str, rows: Iterable[tuple[str, int]]) -> Iterable[Any]:
    """The values of (body, checksum) rows; one parse for many is three times as fast as one for each."""
    chunk: list[str] = []
    crc32 = zlib.crc32
    for body, crc in rows:
        if not isinstance(body, str) or crc32(body.encode()) != crc:
            raise Damaged(f"a row of the table {table!r} fails its checksum")
        chunk.append(body)
        if len(chunk) == _CHUNK:
            yield from json.loads(f"[{','.join(chunk)}]")
            chunk.clear()
    yield from json.loads(f"[{','.join(chunk)}]")
