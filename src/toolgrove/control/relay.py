"""Stdin and stdout, carried to the gateway byte for byte: the client talks to the gateway itself."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

from toolgrove.control.door import PATIENCE, first_line, knock
from toolgrove.control.note import Note

_PIECE = 2**16
SAID = "toolgrove: the gateway has ended, and this connection with it. Start the client's server again."


def relay(folder: str, note: Note, agent: str) -> int | None:
    """Carry until either side ends: 0 if the client left, 1 if the gateway did; None if it cannot be carried.

    What the gateway has against the agent goes to stderr.
    """
    try:
        line = knock(note)
        line.settimeout(PATIENCE)
        line.sendall(first_line(folder, note, "stdio", agent=agent))
        answer = json.loads(_line(line) or b"{}")
    except (OSError, ValueError):
        return None
    if "error" in answer:
        _say(f"toolgrove: {answer['error']['message']}")
        return 1
    if "result" not in answer:
        return None
    line.settimeout(None)
    _say(f"Using the gateway at {note.address} as {agent}.")
    return _carry(line)


def _carry(line: socket.socket) -> int:
    left = threading.Event()

    def upstream() -> None:
        try:
            while piece := os.read(0, _PIECE):
                line.sendall(piece)
            left.set()
            line.shutdown(socket.SHUT_WR)  # answers that are on their way still come
        except OSError:  # the gateway is gone, which the other direction tells
            pass

    threading.Thread(target=upstream, daemon=True).start()
    try:
        while piece := line.recv(_PIECE):
            while piece:
                piece = piece[os.write(1, piece) :]
    except BrokenPipeError:
        return 0
    except OSError:
        pass
    if left.is_set():
        return 0
    _say(SAID)
    return 1


def _line(line: socket.socket) -> bytes:
    """The first line of the answer, and nothing of what comes after it."""
    said = b""
    while not said.endswith(b"\n") and (byte := line.recv(1)):
        said += byte
    return said


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it
        os.write(2, f"{text}\n".encode(errors="replace"))
