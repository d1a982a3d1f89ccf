"""The files of a folder at every moment of its life, also after a power cut: what was not synced may then be gone."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from sweep.disk import Noted


@dataclass(slots=True)
class File:
    """What a file holds, and what it held when it was synced last."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


class Files:
    """The files below a folder, in memory."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, File] = {}
        self._folders: list[str] = []
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_dir():
                self._folders.append(name)
            elif not name.endswith("-shm"):
                data = path.read_bytes()
                self._files[name] = File(bytearray(data), data)

    def take(self, one: Noted) -> None:
        """Do what was done."""
        match one.what:
            case "c":
                self._files[one.path] = File()
            case "m":
                self._folders.append(one.path)
            case "u":
                self._files.pop(one.path, None)
            case "r":
                self._files[one.data.decode()] = self._files.pop(one.path)
            case "l":
                self._files[one.data.decode()] = self._files[one.path]
            case "s" if one.path in self._files:
                self._files[one.path].synced = bytes(self._files[one.path].now)
            case "t" if one.path in self._files:
                now = self._files[one.path].now
                del now[one.at :]
                now.extend(bytes(one.at - len(now)))
            case "w" if one.path in self._files:
                write(self._files[one.path].now, one)

    def text(self, name: str) -> str:
        """What a file holds."""
        return self._files[name].now.decode() if name in self._files else ""

    def lay(self, folder: Path, *, torn: Noted | None = None, cut: Random | None = None) -> None:
        """Make the folder as it was; `torn` is half of one write more, `cut` draws which files are as last synced."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in self._folders:
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, file in self._files.items():
            data = file.synced if cut is not None and cut.random() < 0.5 else bytes(file.now)
            if torn is not None and torn.path == name:
                half = bytearray(data)
                write(half, torn._replace(data=torn.data[: len(torn.data) // 2]))
                data = bytes(half)
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o600)


def write(now: bytearray, one: Noted) -> None:
    """Put what was written where it was written."""
    now.extend(bytes(max(0, one.at - len(now))))
    now[one.at : one.at + len(one.data)] = one.data
