"""Files that are written from the code: write those that are stale, or say which they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def keep(wanted: Mapping[Path, str], command: str) -> int:
    """Write what is stale; with --check only say so, and answer 1."""
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is not current: run {command}")
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0
