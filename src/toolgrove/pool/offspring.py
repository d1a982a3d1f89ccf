"""The processes that one instance of a project started: marked, written down, and ended with it or at the next start.

Whatever a server starts inherits its environment, and with it the mark; so a process is found again though it left its
group, its session and its parent. Only Linux shows the environment of a process: elsewhere its group has to do.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger("toolgrove.pool")
MARK = "TOOLGROVE_INSTANCE"
_FOLDER = "instances"
_PROC = Path("/proc")
_POLL = 0.02
_WAIT = 0.5
_ENVIRONMENT_ENDS = 48
"""Where Linux tells at which address the environment of a process ends, counted from its state; 0 before it has one."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, told from a later one with the same id by the moment when it began."""

    id: int
    began: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The one with this id; None where there is none, or it has ended already."""
        try:
            state, *more = _told(pid)
        except (OSError, ValueError):
            return None
        return None if state in "ZX" else cls(pid, int(more[18]))

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return Process.of(self.id) == self

    def kill(self) -> None:
        """End it, and nobody who has its id by now."""
        if self.is_alive:
            with suppress(OSError):
                os.kill(self.id, signal.Signals["SIGTERM" if sys.platform == "win32" else "SIGKILL"])


class Offspring:
    """Marks what is started for an instance, and ends what it or a dead one before it left."""

    def __init__(self, state: Path | None = None) -> None:
        self._folder = None if state is None else state / _FOLDER
        self._name = secrets.token_hex(8)
        self._count = 0
        self._ends_at = math.inf
        self._file: Path | None = None

    def hurry(self, seconds: float) -> None:
        """Leave children no more than so many seconds to end in, from now on."""
        self._ends_at = time.monotonic() + seconds

    def patience(self, seconds: float, share: float) -> float:
        """How long to wait for a child: as long as usual, or a share of what is left."""
        return max(0.0, min(seconds, (self._ends_at - time.monotonic()) * share))

    def mark(self) -> str:
        """The mark of the next child; nobody else has it."""
        self._count += 1
        return f"{self._name}.{self._count}"

    def started(self, pid: int) -> None:
        """Write a child down, so that it is found though it hides its environment."""
        child = Process.of(pid)
        if child is None or self._folder is None:
            return
        try:
            if self._file is None:
                self._file = self._begin(self._folder)
            self._write(self._file, child)
        except OSError as problem:
            log.warning("What is started cannot be written down for the next start: %s", problem)

    def end_all(self) -> None:
        """End what is left of this instance; blocks until it is gone."""
        if self._count:
            end_marked(self._name)
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()

    def sweep(self) -> None:
        """End what instances of this project left that are dead."""
        if self._folder is None or sys.platform != "linux":
            return
        for file in [*self._folder.glob("*.jsonl")] if self._folder.is_dir() else []:
            try:
                lines = [json.loads(line) for line in file.read_text().splitlines()]
                self._sweep(file, lines)
            except (OSError, ValueError, KeyError, TypeError, IndexError) as problem:
                log.warning("What an earlier instance left cannot be read from %s: %s", file.name, problem)
                file.unlink(missing_ok=True)

    def _sweep(self, file: Path, lines: list[dict[str, Any]]) -> None:
        first, *children = lines
        owner = Process(first["pid"], first["began"])
        if first["boot"] == _boot():
            if owner.is_alive:
                return
            left = [one for one in _marked(file.stem) if one.began >= owner.began]
            known = [Process(one["pid"], one["began"]) for one in children]
            left += [one for one in known if one.is_alive and one not in left]
            if left:
                log.warning("Processes that an earlier instance left behind are ended: %d", len(left))
                _end(left)
        file.unlink(missing_ok=True)

    def _begin(self, folder: Path) -> Path:
        for one in (folder.parent, folder):  # each by itself, since only the last of several would be made private
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / f"{self._name}.jsonl"
        own = Process.of(os.getpid())
        if own is not None:
            self._write(file, own, boot=_boot())
        return file

    def _write(self, file: Path, process: Process, **more: str) -> None:
        line = json.dumps({"pid": process.id, "began": process.began, **more})
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as out:
            out.write(f"{line}\n")


def end_marked(mark: str) -> None:
    """End what one child started and left, and what that starts meanwhile; blocks until it is gone."""
    ends = time.monotonic() + _WAIT
    while (left := [*_marked(mark)]) and time.monotonic() < ends:
        _end(left)


def _marked(mark: str) -> Iterator[Process]:
    """The processes of ours whose environment has the mark, or one that goes on from it."""
    if sys.platform != "linux":
        return
    begin = f"{MARK}={mark}".encode()
    own = os.getuid()
    for entry in os.scandir(_PROC):
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            if entry.stat().st_uid != own:
                continue
            environment = environment_of(int(entry.name))
        except OSError:
            continue
        for variable in environment.split(b"\0"):
            if variable == begin or variable.startswith(begin + b"."):
                process = Process.of(int(entry.name))
                if process is not None:
                    yield process


def environment_of(pid: int) -> bytes:
    """What a process was started with; one that is about to begin shows nothing for a moment, which is waited for."""
    folder, ends = _PROC / str(pid), time.monotonic() + _WAIT
    while not (environment := (folder / "environ").read_bytes()) and time.monotonic() < ends:
        (folder / "exe").readlink()  # raises for a thread of the kernel, which never gets one
        if int(_told(pid)[_ENVIRONMENT_ENDS]):
            return (folder / "environ").read_bytes()  # by now it has one, and be it empty
        time.sleep(_POLL)
    return environment


def _told(pid: int) -> list[str]:
    """What Linux tells of a process, from its state on."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _end(processes: list[Process]) -> None:
    for process in processes:
        process.kill()
    ends = time.monotonic() + _WAIT
    while any(process.is_alive for process in processes) and time.monotonic() < ends:
        time.sleep(_POLL)


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
