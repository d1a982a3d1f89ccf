"""A private HAProxy with the configuration of the examples, before two servers of this machine."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ports import free_port
from services.programs import program
from waiting import wait_until

CONFIGURATION = Path(__file__).resolve().parents[2] / "examples" / "haproxy.cfg"


class HAProxy:
    """Listens on a port of its own, and tells what it thinks of its servers."""

    def __init__(self, one: int, two: int) -> None:
        self._program = program("haproxy")
        self._folder = TemporaryDirectory(prefix="grove-haproxy-")
        self._control = Path(self._folder.name) / "control"
        self.port = free_port()
        beside = Path(self._folder.name) / "control.cfg"
        beside.write_text(f"global\n    stats socket {self._control} level admin\n")
        self._server = subprocess.Popen(
            [str(self._program), "-db", "-q", "-f", str(CONFIGURATION), "-f", str(beside)],
            env={
                **os.environ,
                "GROVE_BIND": f"127.0.0.1:{self.port}",
                "GROVE_ONE": f"127.0.0.1:{one}",
                "GROVE_TWO": f"127.0.0.1:{two}",
            },
            stdin=subprocess.DEVNULL,
        )
        wait_until(self._control.exists)

    def is_up(self, server: str, backend: str = "replicas") -> bool:
        """Whether it sends requests to a server."""
        return self._statistics(backend, server)["status"].startswith("UP")

    def _statistics(self, backend: str, server: str) -> dict[str, str]:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(self._control))
            peer.sendall(b"show stat\n")
            told = b"".join(iter(lambda: peer.recv(65_536), b"")).decode()
        rows = csv.DictReader(told.removeprefix("# ").splitlines())
        (found,) = [row for row in rows if (row["pxname"], row["svname"]) == (backend, server)]
        return found

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self._server.kill()
        self._server.wait()
        self._folder.cleanup()
