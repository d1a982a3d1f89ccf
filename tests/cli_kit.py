"""What the tests of the command line share: a command as a shell or a terminal runs it, and a project file."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from warm.command import Process, python

PATIENCE = 60.0


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Toolgrove = Callable[..., Said]
Project = Callable[..., Path]


@dataclass(frozen=True, kw_only=True, slots=True)
class Terminal:
    """A command at a terminal: what it shows, and what a person types."""

    process: Process
    screen: int

    def read_until(self, pattern: str) -> str:
        """All that it shows until a pattern is found in it."""
        seen = ""
        while re.search(pattern, seen) is None:
            assert select.select([self.screen], [], [], PATIENCE)[0], f"{pattern!r} never came after {seen!r}"
            seen += os.read(self.screen, 4096).decode().replace("\r", "")
        return seen

    def rest(self) -> str:
        """What it shows until it ends."""
        seen = b""
        with suppress(OSError):  # a terminal whose last program has gone
            while select.select([self.screen], [], [], PATIENCE)[0]:
                seen += os.read(self.screen, 4096)
        return seen.decode().replace("\r", "")

    def interrupt(self) -> None:
        """Press Ctrl-C, once more if the first came between the prompt and the wait for a key: readline loses that."""
        for _ in range(2):
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=PATIENCE / 3)
                return

    def type(self, text: str) -> None:
        """Press some keys."""
        os.write(self.screen, text.encode())


@contextmanager
def at_a_terminal(*words: str, cwd: Path, width: int = 80) -> Iterator[Terminal]:
    """Run a command at a terminal of some width; whoever asks for it has to end it."""
    screen, child = pty.openpty()
    environ = os.environ | {"TERM": "dumb", "COLUMNS": str(width), "LINES": "24"}
    with Process(
        python("-m", "toolgrove", *words), stdin=child, stdout=child, stderr=child, cwd=cwd, env=environ
    ) as process:
        os.close(child)
        try:
            yield Terminal(process=process, screen=screen)
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
            os.close(screen)
