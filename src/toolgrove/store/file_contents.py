"""Whether a database file holds what we left in it: somebody may write over it in its place.

A file that is opened beside SQLite is closed only when nobody here uses it any more: closing it drops the locks that
SQLite holds on it in this process.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Sequence
from pathlib import Path

_BLOCK = 1024 * 1024
_held: dict[tuple[int, int], tuple[io.FileIO, int]] = {}
_holding = threading.Lock()


class FileContents:
    """Remembers some parts of a file, or all of it; they are read again only where its time or size has changed."""

    def __init__(self, path: Path, parts: Sequence[tuple[int, int]] = ()) -> None:
        """`parts` are offsets and lengths; none at all are the whole file."""
        self._parts = parts
        self._key, self._file = _hold(path)
        self._seen = self._moment()
        self._sample = self._read()

    def settle(self, state: os.stat_result | None = None) -> None:
        """Take what the file holds now as ours; `state` is for who just asked for it."""
        now = self._moment(state)
        if now != self._seen:
            self._seen, self._sample = now, self._read()

    def are_foreign(self, state: os.stat_result | None = None) -> bool:
        """Whether it holds something else than we left in it."""
        now = self._moment(state)
        if now == self._seen:
            return False
        if self._read() != self._sample:
            return True
        self._seen = now  # its time alone is another
        return False

    def close(self) -> None:
        """Let go of the file, after every connection to it is closed."""
        _release(self._key)

    def _moment(self, state: os.stat_result | None = None) -> tuple[int, int]:
        state = state or os.fstat(self._file.fileno())
        return state.st_mtime_ns, state.st_size

    def _read(self) -> bytes:
        digest = hashlib.blake2b()
        with _holding:  # whoever has the same file moves its place, too
            for offset, length in self._parts or ((0, os.fstat(self._file.fileno()).st_size),):
                self._file.seek(offset)
                while length > 0 and (block := self._file.read(min(length, _BLOCK))):
                    digest.update(block)
                    length -= len(block)
        return digest.digest()


def _hold(path: Path) -> tuple[tuple[int, int], io.FileIO]:
    with _holding:
        state = path.stat()
        key = state.st_dev, state.st_ino
        file, users = _held.get(key) or (io.FileIO(path), 0)
        _held[key] = file, users + 1
        return key, file


def _release(key: tuple[int, int]) -> None:
    with _holding:
        file, users = _held[key]
        if users > 1:
            _held[key] = file, users - 1
        else:
            del _held[key]
            file.close()
