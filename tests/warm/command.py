"""`python("-m", "toolgrove", …)`: a command for subprocess, the SDK's clients or a project file."""

import atexit
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LAUNCHER = HERE / "launcher.py"


def python(*arguments: str | Path) -> list[str]:
    """The command of a warm Python; `COLD=1` makes all of them cold, to tell whose fault a failure is."""
    words = [str(argument) for argument in arguments]
    if os.environ.get("COLD"):
        return [sys.executable, *words]
    return [sys.executable, "-I", "-S", str(LAUNCHER), _server(), *words]


class Process(subprocess.Popen[Any]):
    """A process whose signals reach the real child of a warm command at once, a kill too; a cold one is like any."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self._real: int | None = None
        telling, told = os.pipe()
        with open(telling, "rb") as telling_file:
            warm = str(LAUNCHER) in command
            if warm:
                options["pass_fds"] = (*options.get("pass_fds", ()), told)
                options["env"] = {**(options.get("env") or os.environ), "WARM_TELL": str(told)}
            try:
                super().__init__(command, **options)
            finally:
                os.close(told)
            if warm:
                self._real = int(telling_file.readline() or 0) or None

    @property
    def real_pid(self) -> int:
        """The process that runs the program."""
        return self._real or self.pid

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the real one has ended, and its launcher is about to
                os.kill(self.real_pid, sig)


@functools.cache
def _server() -> str:
    """The address of this process's server, which ends with it."""
    folder = tempfile.mkdtemp(prefix="warm-")
    address = f"{folder}/socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "warm.server", str(listening.fileno())],
            cwd=HERE.parent,
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )

    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()  # which ends it, unless a test leaked a copy of this pipe
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return address
