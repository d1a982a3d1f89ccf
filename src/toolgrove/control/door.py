"""Knocking at the socket that a note names."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from toolgrove.control.note import Note, read, read_token
from toolgrove.control.place import UNIX

PATIENCE = 3.0
"""Seconds for a gateway to say who it is; one that hangs is as good as none."""


def reached(folder: str | os.PathLike[str], file: str | os.PathLike[str]) -> Note | None:
    """The note of the gateway that serves this project file and answers; a stale or foreign note is none."""
    note = read(folder)
    if note is None or not _same(note.file, os.fspath(file)) or not note.lives:
        return None
    try:
        with knock(note) as line:
            line.settimeout(PATIENCE)
            line.sendall(first_line(folder, note, "hello"))
            with line.makefile("rb") as answers:
                said = json.loads(answers.readline() or b"{}")
    except (OSError, ValueError):
        return None
    return note if isinstance(said, dict) and said.get("result") == note.instance else None


def knock(note: Note) -> socket.socket:
    """A connection to the gateway."""
    if note.port:
        return socket.create_connection(("127.0.0.1", note.port), timeout=PATIENCE)
    line = socket.socket(UNIX)
    try:
        line.settimeout(PATIENCE)
        line.connect(note.socket)
    except BaseException:
        line.close()
        raise
    line.settimeout(None)
    return line


def first_line(folder: str | os.PathLike[str], note: Note, do: str, **given: Any) -> bytes:
    """What is said first: who is meant, the token where one is needed, and what to do."""
    token = {"token": read_token(folder)} if note.port else {}
    return json.dumps({"instance": note.instance, **token, "do": do, "with": given}).encode() + b"\n"


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
