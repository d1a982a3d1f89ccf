"""A client's entry for a Python file or a folder of them, which the bridge serves without a project."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from apcore_files.app_name import is_app, parts
from toolgrove.cli.install.client import McpClient, ServerEntry


def is_served_alone(text: str) -> bool:
    """Whether this is a Python file (`app.py`, `app.py:registry`) or a folder, not the name of an agent."""
    return is_app(text) or Path(text).is_dir()


def app_entry(client: McpClient, text: str) -> tuple[str, ServerEntry]:
    """What to call it, and the entry with which the client starts `apcore-mcp`; ValueError if it is not there."""
    script = Path(sys.executable).with_name("apcore-mcp")
    command, first = (str(script), []) if script.exists() else (sys.executable, ["-m", "apcore_mcp"])
    if not is_app(text):
        folder = Path(text).absolute()
        return _name(folder.name), client.started(command, [*first, "--extensions-dir", str(folder)])
    file, name = parts(text)
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    app = str(file.absolute()) + (f":{name}" if name else "")
    return _name(file.stem), client.started(command, [*first, app])


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "functions"
