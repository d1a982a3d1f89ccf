"""`toolgrove demo` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from e2e.servers import child
from warm.command import python

DEADLINE = 60.0


@contextmanager
def demo(folder: Path, *flags: str, **environ: str) -> Iterator[dict[str, Any]]:
    """The demo, ready; it has to end gently."""
    words = ["demo", "--port", "0", "--folder", str(folder), "--json", *flags]
    quiet = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    surroundings = {"env": quiet | environ, "stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with child(python("-m", "toolgrove", *words), **surroundings) as process:
        assert process.stdout is not None
        text = b""
        for line in process.stdout:
            text += line
            if line.rstrip() == b"}":
                break
        yield json.loads(text)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, errors
        assert b"Traceback" not in errors, errors


def operator(greeting: dict[str, Any]) -> httpx2.AsyncClient:
    base, _, token = greeting["console"].partition("/console#token=")
    return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=DEADLINE)
