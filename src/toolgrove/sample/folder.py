"""The sample project's folder: written once, then the person's own; only the shop's port is kept right."""

from __future__ import annotations

import json
import re
import socket
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from toolgrove.config import Config
from toolgrove.sample.shop import DOCUMENT, HOST

FILE = "toolgrove.yaml"
_LAST_PORT = 65_535
_CLOCK = "# mcp-server-time"
_PORT = re.compile(rf"(?<=http://{re.escape(HOST)}:)\d+")


def write(folder: Path) -> Path:
    """Write what is missing; returns the project file."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {
        FILE: _project(),
        "shop.json": DOCUMENT.read_text("utf-8"),
        "toolgrove.schema.json": json.dumps(Config.json_schema(), indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in wanted.items():
        path = folder / name
        if not path.exists():
            path.write_text(text, encoding="utf-8")
    return folder / FILE


def _project() -> str:
    text = files(__package__).joinpath(FILE).read_text("utf-8")
    if find_spec("mcp_server_time") is None:
        text = "".join(line for line in text.splitlines(keepends=True) if not line.rstrip().endswith(_CLOCK))
    return text.replace("PYTHON", json.dumps(sys.executable)).replace(f" {_CLOCK}", "").replace("SHOP_PORT", "0")


def shop_socket(file: Path, *, near: int) -> socket.socket:
    """Listen where the project file looks for the shop; if that port is taken, elsewhere, and say so in the file."""
    text = file.read_text(encoding="utf-8")
    written = _PORT.search(text)
    listening = _listen(int(written[0]) if written and int(written[0]) else near)
    port = listening.getsockname()[1]
    if written and int(written[0]) != port:
        file.write_text(_PORT.sub(str(port), text, count=1), encoding="utf-8")
    return listening


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port if port <= _LAST_PORT else 0))
    except OSError:
        return socket.create_server((HOST, 0))
