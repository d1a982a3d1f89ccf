"""Server-sent events: the data of each, bounded; nothing else of them matters here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from toolgrove.pool.mcp.faults import Nonsense
from toolgrove.pool.mcp.jsonrpc import MAX_MESSAGE

_MARK = b"\xef\xbb\xbf"
MESSAGES = (b"", b"message")


class Events:
    """Cuts a stream into events; keeps the one that is not complete yet.

    A line ends with LF, CR or both. The byte order mark that a stream may begin with says nothing.
    """

    def __init__(self, names: Collection[bytes] = MESSAGES) -> None:
        self.name = b""
        self._names = names
        self._buffer = bytearray()
        self._begun = self._after_cr = False
        self._searched = 0
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0
        self._empty = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event of these names that is complete now; `name` is that of the last one."""
        buffer = self._buffer
        if self._after_cr:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), not chunk
        if chunk.endswith(b"\r"):
            self._after_cr = True
        buffer += chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk
        while (end := buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._searched = 0
            if not self._begun:
                line, self._begun = line.removeprefix(_MARK), True
            if line:
                self._take(line)
            elif data := self._finish():
                yield data
            else:
                self._empty += 1
        self._searched = len(buffer)
        if self._searched + self._size > MAX_MESSAGE:
            raise Nonsense(f"sent an event larger than {MAX_MESSAGE // (1024 * 1024)} MiB")

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._empty += bool(self._name)
            self._name = value
        else:
            self._empty += 1

    def chatter(self) -> int:
        """How many lines said nothing since the last look: a server could go on like that for ever."""
        empty, self._empty = self._empty, 0
        return empty

    def _finish(self) -> bytes:
        data = b"\n".join(self._data) if self._name in self._names else b""
        self._data.clear()
        self.name, self._name, self._size = self._name, b"", 0
        return data
