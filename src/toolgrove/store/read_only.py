"""Databases in a folder that nobody here may write: they can still be looked at."""

from __future__ import annotations

import os
from pathlib import Path


def is_read_only(path: Path) -> bool:
    """Whether a file that is there cannot be written, or nothing beside it, as SQLite needs it."""
    return path.exists() and not all(os.access(each, os.W_OK) for each in (path, path.parent))


def reading_address(path: Path, *, briefly: bool = False) -> str:
    """The address for a reader; where no log stands beside the file and none can be made, nobody else writes either.

    Who looks `briefly`, at what is written once, makes no files beside it where nobody has it open.
    """
    alone = (briefly or is_read_only(path)) and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
