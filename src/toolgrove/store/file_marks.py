"""Whether files are still the ones that were opened: somebody may delete or replace them meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class FileMarks:
    """Remembers which file each name led to when it was first seen; once one is lost, that stays so."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._marks = {path: _mark(path) for path in paths}
        self.lost = False
        """Whether that was so at the last look."""

    @classmethod
    def of_database(cls, path: Path, *beside: str) -> FileMarks:
        """Those of a SQLite file and its write-ahead log, which may come later; `beside` are further endings."""
        return cls(path.with_name(path.name + ending) for ending in ("", "-wal", *beside))

    def are_lost(self) -> bool:
        """Whether a name that led to a file leads to none now, or to another; looks anew."""
        if not self.lost:
            for path, mark in self._marks.items():
                now = _mark(path)
                if mark is None:
                    self._marks[path] = now
                elif mark != now:
                    self.lost = True
        return self.lost


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino
