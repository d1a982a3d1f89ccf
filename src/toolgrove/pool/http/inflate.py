"""Undoes the compression of an answer, never beyond the number of bytes that are wanted."""

from __future__ import annotations

import zlib
from typing import Protocol


class BodyTooLarge(Exception):
    """There is more than the limit allows."""


class Garbled(Exception):
    """The data is not what its header says."""


class Inflate(Protocol):
    """Takes an answer piece by piece."""

    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> None: ...


class Plain:
    """An answer that is not compressed."""

    def feed(self, data: bytes) -> bytes:
        """Pass the data on as it is."""
        return data

    def end(self) -> None:
        """Accept any end: there is no trailer to check."""


class Inflated:
    """An answer in gzip or deflate; `room` bounds what comes out, however little goes in."""

    def __init__(self, encoding: str, room: int) -> None:
        self._gzip = encoding != "deflate"
        self._room = room
        self._stream = zlib.decompressobj(wbits=31 if self._gzip else 15)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """What the next piece unfolds to."""
        whole = bytearray()
        while data:
            if self._stream.eof:
                if not self._gzip:
                    break
                self._stream = zlib.decompressobj(wbits=31)  # gzip files may follow each other
            out = self._step(data)
            whole += out
            self._room -= len(out)
            if self._room < 0:
                raise BodyTooLarge
            data = self._stream.unconsumed_tail or self._stream.unused_data
        return bytes(whole)

    def end(self) -> None:
        """Refuse an answer that was cut off."""
        if self._begun and not self._stream.eof:
            raise Garbled

    def _step(self, data: bytes) -> bytes:
        try:
            out = self._stream.decompress(data, self._room + 1)
        except zlib.error:
            if self._gzip or self._begun:
                raise Garbled from None
            self._stream = zlib.decompressobj(wbits=-15)  # some servers leave out the zlib frame
            self._begun = True
            return self._step(data)
        self._begun = True
        return out


def inflate(encoding: str, room: int) -> Inflate:
    """What undoes a content-encoding; two of them on top of each other only serve to hide a bomb."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return Plain()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return Inflated(encoding, room)
    raise Garbled
