"""Where sealed records go: a ring in memory, a file of JSON Lines, or whatever a project brings."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from errno import ENOSPC
from io import SEEK_END, FileIO
from pathlib import Path
from typing import Any, Protocol

from toolgrove.store.audit.bodies import NO_BODIES, Bodies
from toolgrove.store.audit.chain import START, Place, Sealed, number_of, read_record, sealed_text, unsigned
from toolgrove.store.audit.notary import Notary, private
from toolgrove.store.audit.notices import ending, heading, read_ending, read_heading
from toolgrove.store.audit.signing import SIGNATURE
from toolgrove.store.audit.unfinished import Unfinished
from toolgrove.store.unusable import StoreUnusable

RING_BYTES = 16 * 1024 * 1024
_OPENINGS = (b'{"number":', b'{"goesOnFrom":', b'{"signedTo":')
_SEALED = re.compile(rb'"(?:hash":"[0-9a-f]{64}"|number":\d+,"hash":"[0-9a-f]{64}"}),"seal":"')
"""Where a line may have a seal; a body may look the same, so the latest few are read."""
_LATEST = 16


class AuditSink(Protocol):
    """Takes sealed records; raises OSError when it cannot."""

    def write(self, sealed: Sealed) -> None: ...


class AuditRing:
    """The latest records, in memory; as text, which the garbage collector need not look at.

    Bodies have a budget of their own, so that a few large ones cannot fill the memory: the oldest go first. One thread
    may write while others read: a reader sees the records that there are when it begins.
    """

    def __init__(self, size: int = 10_000, *, body_bytes: int = RING_BYTES) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=size)
        self._bodies: deque[tuple[int, Bodies, int]] = deque()
        self._room = body_bytes
        self._count = 0

    def write(self, sealed: Sealed) -> None:
        """Keep it until newer ones push it out."""
        line, _, bodies = sealed
        lines, kept = self._lines, self._bodies
        self._count += 1
        lines.append((self._count, line))
        if bodies is not NO_BODIES:
            size = bodies.size
            kept.append((self._count, bodies, size))
            self._room -= size
        while kept and (self._room < 0 or kept[0][0] < lines[0][0]):
            self._room += kept.popleft()[2]

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self.lines())

    def __reversed__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, reversed(self.lines()))

    def lines(self) -> list[str]:
        """The records as they would stand in a file."""
        bodies = {at: kept for at, kept, _ in self._bodies.copy()}
        return [bodies.get(at, NO_BODIES).beside(line) for at, line in self._lines.copy()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tail:
    """The end of a log: its last place, the last one that a key signed, and the calls without an end.

    `is_ours` where the last signature is one of this project's key; None where there is none. `last` is when its last
    record was written.
    """

    place: Place
    unfinished: Unfinished
    signed: Place | None = None
    is_ours: bool | None = None
    last: str = ""

    def is_sealed(self, vouched: Place | None) -> bool:
        """Whether this project's key sealed all of it; `vouched` is a place that a seal elsewhere vouches for."""
        return self.is_ours is True and self.place in (self.signed, vouched)


class JsonLines:
    """A file with one record per line, each written at once and whole.

    A file that was moved away begins anew, with a line that names the record that it goes on from. Where its last
    record has no signature, `sign` adds a line with one; only whoever chained the records may call that.
    """

    def __init__(self, path: Path, notary: Notary | None = None) -> None:
        self.path = path
        self._notary = notary
        self._file: FileIO | None = None
        self._start = 0
        self._open_end: Place | None = None
        """The last record that was written here, where it has no signature."""
        self._end_before: Place | None = None

    def tail(self, *, mend: bool = True) -> Tail:
        """How the file ends; what a crash left of a torn line is cut off, unless somebody only looks."""
        line = record = torn = b""
        whole = 0
        unfinished = Unfinished()
        latest: deque[bytes] = deque(maxlen=_LATEST)
        try:
            with self.path.open("rb") as file:
                for read in file:
                    if read.endswith(b"\n"):
                        line, whole = read, whole + len(read)
                        if read.startswith(_OPENINGS[0]):
                            record = read
                        if _SEALED.search(read):
                            latest.append(read)
                        if not unfinished.is_empty or b'"begun"' in read:
                            _hear(unfinished, read)
                    else:
                        torn = read
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from None
        place = self._end(line.decode(errors="replace")) if line else START
        if torn and mend:
            if all(torn[: len(opening)] != opening[: len(torn)] for opening in _OPENINGS):
                raise self._unusable("ends with something that is no record")
            os.truncate(self.path, whole)
        signed, is_ours = self._signed(latest)
        return Tail(place=place, unfinished=unfinished, signed=signed, is_ours=is_ours, last=_timestamp(record))

    def _end(self, line: str) -> Place:
        mark, link = read_heading(line) or read_ending(line), read_record(line)
        if mark is not None:
            return mark.place
        if link is not None:
            return link.place
        raise self._unusable("ends with a line that is no record")

    def _signed(self, latest: Iterable[bytes]) -> tuple[Place | None, bool | None]:
        """The last place with a seal, and whether that is a signature of our key; None where it is one of before."""
        for line in reversed(list(latest)):
            text = line.decode(errors="replace")
            mark, link = read_heading(text) or read_ending(text), read_record(text)
            if mark is not None:
                place, said, seal = mark.place, mark.text, mark.seal
            elif link is not None and link.seal:
                place, said, seal = link.place, sealed_text(link.place.hash, link.seal), link.seal
            else:
                continue
            if len(seal) != SIGNATURE or self._notary is None:
                return place, None
            return place, self._notary.holds(said, seal)
        return None, None

    def _unusable(self, problem: str) -> StoreUnusable:
        advice = "Check the path in workspace.auditLog, or move the file away to begin a new log."
        return StoreUnusable(kind="audit log", where=self.path, problem=problem, advice=advice)

    def write(self, sealed: Sealed) -> None:
        """Append one line; a torn one is taken back, so that the chain goes on after the fault."""
        file = self._current()
        self._start = file.seek(0, SEEK_END)
        text = f"{sealed.text}\n"
        if self._start == 0:
            text = self._heading(sealed) + text
        line = text.encode()
        try:
            if file.write(line) != len(line):
                raise OSError(ENOSPC, "the audit log took only part of a record", str(self.path))
        except OSError:
            self.take_back()
            raise
        self._end_before, self._open_end = self._open_end, None
        if not sealed.is_signed:
            self._open_end = Place(number_of(sealed.line), sealed.hash)

    def sign(self) -> None:
        """Sign what was written, if its last record has no signature; OSError if that cannot be written."""
        place, file, notary = self._open_end, self._file, self._notary
        if place is None or file is None or notary is None:
            return
        self._open_end = self._end_before = None
        line = ending(place, notary.sign).encode()
        if line:
            self._start = file.seek(0, SEEK_END)
            if file.write(line + b"\n") != len(line) + 1:
                self.take_back()
                raise OSError(ENOSPC, "the audit log took only part of a signature", str(self.path))

    def sync(self) -> None:
        """Make what was written so far outlive the machine's power."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def take_back(self) -> None:
        """Cut the last line off again."""
        self._open_end = self._end_before
        if self._file is not None:
            self._file.truncate(self._start)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _current(self) -> FileIO:
        """The file under our name, which may be another one than before."""
        if self._file is not None:
            try:
                is_same = os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno()))
            except FileNotFoundError:
                is_same = False
            if not is_same:
                self.close()
        if self._file is None:
            self._file = FileIO(self.path, "ab", opener=private)
        return self._file

    def _heading(self, sealed: Sealed) -> str:
        link = read_record(sealed.line)
        if link is None or link.place.number == 1:
            return ""
        sign = self._notary.sign if self._notary is not None else unsigned
        return f"{heading(Place(link.place.number - 1, link.previous), sign)}\n"


def _timestamp(line: bytes) -> str:
    """When a record was written; empty where there is none."""
    link = read_record(line.decode(errors="replace"))
    return "" if link is None else str(link.record.get("timestamp", ""))


def _hear(unfinished: Unfinished, line: bytes) -> None:
    try:
        unfinished.hear(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return  # the chain tells of it


def end_of_log(sinks: Iterable[AuditSink]) -> Tail:
    """How the log file among the sinks ends: where a chain goes on."""
    tails = [sink.tail() for sink in sinks if isinstance(sink, JsonLines)]
    return tails[-1] if tails else Tail(place=START, unfinished=Unfinished())


def close_logs(sinks: Iterable[AuditSink]) -> None:
    """Close the files among the sinks."""
    for sink in sinks:
        if isinstance(sink, JsonLines):
            sink.close()
