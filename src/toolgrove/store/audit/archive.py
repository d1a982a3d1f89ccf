"""The archive: where audit records go before retention takes them out of a store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from toolgrove.store.audit.chain import Place, Sealed, read_record
from toolgrove.store.audit.notary import Notary
from toolgrove.store.audit.notices import read_ending, read_heading
from toolgrove.store.audit.sinks import JsonLines
from toolgrove.store.unusable import StoreUnusable

_BLOCK = 64 * 1024


class AuditArchive:
    """A file of JSON Lines that goes on with the chain of the store; one that was moved away begins anew."""

    def __init__(self, path: Path, notary: Notary | None = None) -> None:
        self.path = path
        self.end: Place | None = None
        """The last record in it, as far as it was opened."""
        self._lines = JsonLines(path, notary)

    def open(self) -> None:
        """Find its end, without reading all of it; what a crash left of a torn line is cut off."""
        try:
            with self.path.open("rb+") as file:
                line, whole = _last_line(file)
                file.truncate(whole)
        except FileNotFoundError:
            self.end = None
            return
        except OSError as error:
            raise self._unusable(f"cannot be opened: {error.strerror}") from None
        self.end = self._place(line.decode(errors="replace")) if line else None

    def add(self, records: Iterable[tuple[int, Sealed]], *, sign: bool) -> None:
        """Append the records that it does not have yet, and make them last; raises OSError if it cannot.

        `sign` where signatures cover the last one, which may have none itself.
        """
        known = 0 if self.end is None else self.end.number
        for number, sealed in records:
            if number > known:
                self._lines.write(sealed)
                self.end = Place(number, sealed.hash)
        if sign:
            self._lines.sign()
        self._lines.sync()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _place(self, line: str) -> Place:
        mark, link = read_heading(line) or read_ending(line), read_record(line)
        if mark is not None:
            return mark.place
        if link is None:
            raise self._unusable("ends with a line that is no record")
        return link.place

    def _unusable(self, problem: str) -> StoreUnusable:
        advice = "Check the path in workspace.auditArchive, or move the file away to begin a new one."
        return StoreUnusable(kind="archive of the audit log", where=self.path, problem=problem, advice=advice)


def _last_line(file: BinaryIO) -> tuple[bytes, int]:
    """The last whole line, and where it ends; read from the end, since an archive may be large."""
    read, at = b"", file.seek(0, SEEK_END)
    while at:
        step = min(_BLOCK, at)
        at -= step
        file.seek(at, os.SEEK_SET)
        read = file.read(step) + read
        end = read.rfind(b"\n")
        start = read.rfind(b"\n", 0, max(end, 0))
        if end >= 0 and (start >= 0 or at == 0):
            return read[start + 1 : end], at + end + 1
    return b"", 0
