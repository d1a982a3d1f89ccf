"""Cuts what comes out of a pipe into lines, in linear time and bounded space."""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.pool.mcp.faults import Broken
from toolgrove.pool.mcp.jsonrpc import MAX_MESSAGE


class LineReader:
    """Keeps the line that is not complete yet."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now, without their ends."""
        buffer = self._buffer
        buffer += data
        while (end := buffer.find(b"\n", self._searched)) >= 0:
            if end > self._limit:
                break
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._searched = 0
            yield line
        self._searched = len(buffer)
        if self._searched > self._limit:
            raise Broken(f"sent a line longer than {self._limit // (1024 * 1024)} MiB")
