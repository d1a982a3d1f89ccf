"""Where the socket is: in the state folder if its path is short enough, else in a private folder; or on loopback."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = "control.sock"
LONGEST = 100
"""Bytes; some systems take no more than 104 in the address of a Unix socket, with the zero at its end."""
UNIX = int(getattr(socket, "AF_UNIX", -1))
"""The family of sockets with a path; -1 where there is none, as on Windows."""


@contextmanager
def unix_socket(folder: Path) -> Iterator[socket.socket]:
    """A listening socket that only its owner can connect to; its path goes with it."""
    with _room(folder) as path:
        with suppress(FileNotFoundError):
            path.unlink()  # a gateway that was killed left it
        listening = socket.socket(UNIX)
        try:
            before = os.umask(0o177)
            try:
                listening.bind(str(path))
            finally:
                os.umask(before)
            made = path.lstat().st_ino
            listening.listen(128)
            yield listening
        finally:
            listening.close()
            with suppress(OSError, UnboundLocalError):
                if path.lstat().st_ino == made:  # another gateway may have put its own there
                    path.unlink()


def loopback_socket() -> socket.socket:
    """The same where there are no Unix sockets; a token must keep other users out."""
    return socket.create_server(("127.0.0.1", 0))


@contextmanager
def _room(folder: Path) -> Iterator[Path]:
    path = folder.absolute() / SOCKET
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    given = (os.environ.get("XDG_RUNTIME_DIR"), None, "/tmp")  # noqa: S108  mkdtemp makes it its owner's alone
    places = [place for place in given if place is None or os.path.isdir(place)]
    for place in places:
        room = Path(tempfile.mkdtemp(prefix="toolgrove-", dir=place))
        if len(os.fsencode(room / SOCKET)) <= LONGEST:
            break
        room.rmdir()
    else:
        raise OSError("no folder has a path that is short enough for a socket; set TMPDIR to a short one")
    try:
        yield room / SOCKET
    finally:
        with suppress(OSError):
            room.rmdir()
