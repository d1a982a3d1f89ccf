"""Who but the owner may read a file."""

from __future__ import annotations

import stat
from pathlib import Path


def open_to_others(path: Path) -> str:
    """Who else may read it; empty if no one may, or if there is no file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    if mode & stat.S_IROTH:
        return "everybody on this machine"
    return "its group" if mode & stat.S_IRGRP else ""


def writable_by_others(path: Path) -> bool:
    """Whether somebody else may change it."""
    try:
        return bool(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    except OSError:
        return False
