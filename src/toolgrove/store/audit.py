"""Audit records: one per call, each sealed with the hash of the one before it."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from errno import ENOSPC
from functools import lru_cache
from io import SEEK_END, FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from toolgrove.store.unusable import StoreUnusable
from toolgrove.tree.json_value import compact

Outcome = Literal["success", "failure", "refused", "cancelled", "replayed"]
GENESIS = "0" * 64
_OPENING = b'{"number":'
_HASH = ',"hash":"'


def timestamp(wall: float) -> str:
    """A moment as records carry it."""
    seconds, micros = divmod(round(wall * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros // 1000:03}+00:00"


@lru_cache(maxsize=2)
def _second(wall: int) -> str:
    """Writing a date costs more than the rest of a record, and thousands share one."""
    return datetime.datetime.fromtimestamp(wall, datetime.UTC).isoformat()[:19]


class AuditRecord(NamedTuple):
    """Who called what, on what, and how it ended; there is one for every call, and a tuple is made fastest."""

    timestamp: str
    call_id: str
    agent: str
    session: str
    operation: str
    outcome: Outcome
    targets: tuple[str, ...] = ()
    arguments: str = ""
    duration_ms: float = 0.0
    version: str | None = None
    idempotency_key: str | None = None
    receipt: str | None = None
    error: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as a line of the log holds it."""
        form: dict[str, Any] = {
            "timestamp": self.timestamp,
            "callId": self.call_id,
            "agent": self.agent,
            "session": self.session,
            "operation": self.operation,
            "outcome": self.outcome,
            "targets": self.targets,
            "arguments": self.arguments,
            "durationMs": self.duration_ms,
        }
        if self.version is not None:
            form["version"] = self.version
        if self.idempotency_key is not None:
            form["idempotencyKey"] = self.idempotency_key
        if self.receipt is not None:
            form["receipt"] = self.receipt
        if self.error is not None:
            form["error"] = self.error
        return form


class Sealed(NamedTuple):
    """A record in its place in the chain; `line` is its exact text."""

    line: str
    hash: str


def seal(record: AuditRecord, number: int, previous: str) -> Sealed:
    """Bind a record to the one before it."""
    body = compact({"number": number, **record.to_json(), "previous": previous}, ascii=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return Sealed(f'{body[:-1]},"hash":"{digest}"}}', digest)


def hash_of(line: str) -> str:
    """The hash with which a record ends."""
    return line.rstrip("\n").rpartition(_HASH)[2].removesuffix('"}')


@dataclass(frozen=True, kw_only=True, slots=True)
class Breach:
    """Where a chain of records does not hold."""

    number: int
    problem: str


def verify(lines: Iterable[str]) -> Breach | None:
    """The first place where a log was altered, cut in the middle or reordered; None if it is whole."""
    previous: str | None = None
    for at, line in enumerate(lines):
        body, mark, _ = line.rpartition(_HASH)
        digest = hash_of(line)
        claimed = _previous(body + "}")
        if not mark or claimed is None or hashlib.sha256((body + "}").encode()).hexdigest() != digest:
            return Breach(number=at, problem="the record was altered")
        if previous is not None and claimed != previous:
            return Breach(number=at, problem="a record before it is missing or out of order")
        previous = digest
    return None


def _previous(body: str) -> Any | None:
    """The hash that a record rests on; None where the text is no record, since anyone can make a hash of it."""
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record.get("previous") if isinstance(record, dict) else None


class AuditSink(Protocol):
    """Takes sealed records; raises OSError when it cannot."""

    def write(self, sealed: Sealed) -> None: ...


class AuditRing:
    """The latest records, in memory; as text, which the collector of garbage need not look at."""

    def __init__(self, size: int = 10_000) -> None:
        self._lines: deque[str] = deque(maxlen=size)

    def write(self, sealed: Sealed) -> None:
        """Keep it until newer ones push it out."""
        self._lines.append(sealed.line)

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self._lines)

    def __reversed__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, reversed(self._lines))

    def lines(self) -> list[str]:
        """The records as they would stand in a file."""
        return list(self._lines)


class JsonLines:
    """A file with one record per line, each written at once and whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._start = 0

    def last(self) -> tuple[int, str]:
        """The number and hash of the last record in the file; what a crash left of a torn line is cut off."""
        line = torn = b""
        whole = 0
        try:
            with self._path.open("rb") as file:
                for read in file:
                    if read.endswith(b"\n"):
                        line, whole = read, whole + len(read)
                    else:
                        torn = read
        except FileNotFoundError:
            return 0, GENESIS
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from None
        end = self._end(line) if line else (0, GENESIS)
        if torn:
            if torn[: len(_OPENING)] != _OPENING[: len(torn)]:
                raise self._unusable("ends with something that is no record")
            os.truncate(self._path, whole)
        return end

    def _end(self, line: bytes) -> tuple[int, str]:
        try:
            record = json.loads(line)
            number, digest = record["number"], record["hash"]
        except (ValueError, TypeError, KeyError):
            number = digest = None
        if isinstance(number, int) and isinstance(digest, str):
            return number, digest
        raise self._unusable("ends with a line that is no record")

    def _unusable(self, problem: str) -> StoreUnusable:
        advice = "Check the path in workspace.auditLog, or move the file away to begin a new log."
        return StoreUnusable(kind="audit log", where=self._path, problem=problem, advice=advice)

    def write(self, sealed: Sealed) -> None:
        """Append one line; a torn one is taken back, so that the chain goes on after the fault."""
        if self._file is None:
            self._file = FileIO(self._path, "ab")
        self._start = self._file.seek(0, SEEK_END)
        line = (sealed.line + "\n").encode()
        try:
            if self._file.write(line) != len(line):
                raise OSError(ENOSPC, "the audit log took only part of a record", str(self._path))
        except OSError:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Cut the last line off again."""
        if self._file is not None:
            self._file.truncate(self._start)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def end_of_log(sinks: Iterable[AuditSink]) -> tuple[int, str]:
    """The number and hash of the last record in a log file among the sinks: where a chain goes on."""
    ends = [sink.last() for sink in sinks if isinstance(sink, JsonLines)]
    return ends[-1] if ends else (0, GENESIS)


def close_logs(sinks: Iterable[AuditSink]) -> None:
    """Close the files among the sinks."""
    for sink in sinks:
        if isinstance(sink, JsonLines):
            sink.close()
