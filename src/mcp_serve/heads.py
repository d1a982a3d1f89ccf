"""Heads that were read before: a client sends the same bytes again and again, but for the length of the body."""

import re
from typing import NamedTuple

from mcp_serve.plain import Head, plain_head
from mcp_serve.whole import Header

LONGEST = 1_024
"""Bytes of a head that is remembered, and how many are at most."""
MOST = 1_024
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: (\d{1,5})\r\n")
_PATH = re.compile(rb"(/[A-Za-z0-9._~-]+)+")
"""A target that reads the same however it is decoded."""


class Known(NamedTuple):
    """A plain head, and the path that it asks for."""

    path: str
    head: Head


class Heads:
    """Remembers what the parser made of a head, by its bytes without the digits of the length."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}

    def find(self, data: bytes) -> tuple[Known, bytes] | None:
        """The head of a request that is in the data as a whole, and alone, and its body; None for what is new."""
        end = data.find(_END, 0, LONGEST) + len(_END)
        length = _LENGTH.search(data, 0, end)
        if length is None or int(length[1]) != len(data) - end:
            return None
        known = self._known.get(data[: length.start(1)] + data[length.end(1) : end])
        return None if known is None else (known, data[end:])

    def read(self, data: bytes, method: bytes, target: bytes, headers: list[Header]) -> tuple[bytes, Known] | None:
        """What can be remembered of a head that the parser has read at the beginning of the data, and by which key."""
        end = data.find(_END, 0, LONGEST)
        length = _LENGTH.search(data, 0, end + len(_END))
        if end < 0 or length is None or not _PATH.fullmatch(target) or not _is_all(data[:end], target, headers):
            return None
        head = plain_head(method.decode(), headers)
        key = data[: length.start(1)] + data[length.end(1) : end + len(_END)]
        return None if head is None else (key, Known(target.decode(), head))

    def keep(self, key: bytes, known: Known) -> None:
        """Remember it; where there is no more room, all others are forgotten."""
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = known


def _is_all(text: bytes, target: bytes, headers: list[Header]) -> bool:
    """Whether the text is what the parser read and nothing else, so that the same text is always read like that."""
    first, *lines = text.split(b"\r\n")
    if first != b"POST %b HTTP/1.1" % target or len(lines) != len(headers):
        return False
    return all(
        line[: len(name)].lower() == name and line[len(name) :] == b": " + value
        for line, (name, value) in zip(lines, headers, strict=True)
    )
