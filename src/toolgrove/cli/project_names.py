"""Names in a project file, read without checking the file: whoever completes a word does not wait for that."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import yaml


def agents_in(path: Path) -> list[str]:
    """The agents; a file that names none has those that go without saying."""
    named = _section(path, "agents")
    return named or list(import_module("toolgrove.config").Config.load(path).agents)


def servers_in(path: Path) -> list[str]:
    """The MCP servers."""
    return [*_section(path, "mcpServers"), *_section(path, "servers")]


def _section(path: Path, name: str) -> list[str]:
    try:
        form: Any = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as problem:
        raise ValueError(str(problem)) from None
    section = form.get(name) if isinstance(form, dict) else None
    return [key for key in section if isinstance(key, str)] if isinstance(section, dict) else []
