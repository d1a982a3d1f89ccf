"""A private Redis on a port of its own, which keeps nothing and ends with the test process."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress

from ports import free_port
from services.programs import program
from waiting import wait_until


class Redis:
    """`stop` and `start` at will; the port stays."""

    def __init__(self) -> None:
        self._program = program("redis-server")
        self._folder = tempfile.mkdtemp(prefix="grove-redis-")
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """How a project names it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Run it until it takes connections."""
        if self._server is None:
            options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder]
            self._server = subprocess.Popen([str(self._program), *options], stdout=subprocess.DEVNULL)
            wait_until(self._is_up)

    def _is_up(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as peer:
            peer.sendall(b"PING\r\n")
            return peer.recv(5) == b"+PONG"
        return False

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._server is not None
        return self._server.pid

    def ask(self, command: str) -> bytes:
        """The answer to a command of one word."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as peer:
            peer.sendall(command.encode() + b"\r\n")
            return peer.recv(1_024)

    def stop(self) -> None:
        """Kill it; all that it counted is gone."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
