"""A disk that can fail, as a library in C that a process is started with; see disk.c."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from errno import EIO, ENOSPC
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from services.programs import program

SOURCE = Path(__file__).with_name("disk.c")
LIBRARY = "SWEEP_DISK"
"""The variable that names the library to the process that was started with it."""
FAIL, SHORT, DIE = 1, 2, 3
FAULTS = {"EIO": (FAIL, EIO, 1), "no room": (FAIL, ENOSPC, 0), "short": (SHORT, ENOSPC, 0), "dies": (DIE, 0, 0)}
"""What can become of a call: how, with which error, and whether calls that only read count as well."""
DIED = 77
_HEAD = Struct("=cIQQ")


def compiled(folder: Path) -> Path:
    """The library, made by the C compiler of this machine; without one the test is skipped."""
    library = folder / "disk.so"
    command = [str(program("cc")), "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


def environment(library: Path) -> dict[str, str]:
    """What a process needs to be started with, so that its files are on such a disk."""
    return {**os.environ, "LD_PRELOAD": str(library), LIBRARY: str(library)}


class Noted(NamedTuple):
    """One call that changed something.

    `what` is c(reate), w(rite), t(runcate), u(nlink), r(ename), l(ink), m(kdir) or s(ync).
    """

    what: str
    path: str
    at: int
    data: bytes


class Disk:
    """The disk of this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ[LIBRARY])
        self._library.disk_rest.restype = ctypes.c_long
        self._library.disk_hit.restype = ctypes.c_char_p

    def note(self, folder: Path, file: Path) -> None:
        """Note in a file all that is done below a folder from now on."""
        self._library.disk_note(os.fsencode(folder), os.fsencode(file))

    def fail(self, folder: Path, number: int, fault: str) -> None:
        """Have the call with a number fail below a folder; none has the number 0."""
        how, error, reads = FAULTS[fault]
        self._library.disk_fail(os.fsencode(folder), ctypes.c_long(number), how, error, reads)

    def rest(self) -> int:
        """Let all be well again; how many calls there were."""
        return int(self._library.disk_rest())

    def hit(self) -> str:
        """Which call was the one; empty if none was."""
        return bytes(self._library.disk_hit()).decode()


def noted(file: Path) -> Iterator[Noted]:
    """What was noted in a file."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        what, length, offset, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        path = data[at : at + length].decode()
        at += length
        carries = what in (b"w", b"r", b"l")
        yield Noted(what.decode(), path, offset, data[at : at + size] if carries else b"")
        at += size if carries else 0
