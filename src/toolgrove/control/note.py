"""What a running gateway leaves in the state folder for commands to find."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import NamedTuple

NOTE = "gateway.json"
KEY = "control.token"


class Note(NamedTuple):
    """Where a gateway is: `address` for clients, `socket` or a loopback `port` for commands; `file` is its project."""

    file: str
    address: str
    pid: int
    instance: str
    socket: str = ""
    port: int = 0

    @property
    def lives(self) -> bool:
        """Whether there is a process with its number; that it is the same one, only the socket can tell."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # another user's, or a system that does not say
            return True
        return True


def read(folder: str | os.PathLike[str]) -> Note | None:
    """The note in a state folder; None if there is none that can be understood."""
    try:
        with open(os.path.join(folder, NOTE), encoding="utf-8") as file:
            note = Note(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    kinds = (str, str, int, str, str, int)
    return note if all(isinstance(value, kind) for value, kind in zip(note, kinds, strict=True)) else None


def write(folder: str | os.PathLike[str], note: Note) -> None:
    """Leave a note, whole or not at all, for its owner's eyes only."""
    _put(os.path.join(folder, NOTE), json.dumps(note._asdict()))


def write_token(folder: str | os.PathLike[str], token: str) -> None:
    """Leave the token that commands need where any user of this machine could connect."""
    _put(os.path.join(folder, KEY), token)


def read_token(folder: str | os.PathLike[str]) -> str:
    """That token; empty if there is none."""
    try:
        with open(os.path.join(folder, KEY), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def remove(folder: str | os.PathLike[str], instance: str) -> bool:
    """Take our own note away, and the token; whether it was ours: another gateway may have left its own since."""
    note = read(folder)
    if note is None or note.instance != instance:
        return False
    for name in (NOTE, KEY):
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))
    return True


def _put(path: str, text: str) -> None:
    beside = f"{path}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(beside)
    with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)
