"""Whether files are still the ones that were opened: somebody may delete, replace or overwrite them meanwhile."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from toolgrove.store.file_contents import FileContents

log = logging.getLogger("toolgrove.store")


class FileMarks:
    """Remembers which file each name led to when it was first seen; once one is lost, that stays so.

    With `contents`, what the first file holds counts as well, as it was when we last `settle`d it.
    """

    def __init__(self, paths: Iterable[Path], contents: FileContents | None = None) -> None:
        self._marks = {path: _mark(path) for path in paths}
        self._main = next(iter(self._marks))
        self._contents = contents
        self._is_overwritten = False
        self._log: tuple[Path, int] | None = None
        self.lost = False
        """Whether that was so at the last look."""

    @classmethod
    def of_database(cls, path: Path, *beside: str, contents: FileContents | None = None) -> FileMarks:
        """Those of a SQLite file and its write-ahead log, which may come later; `beside` are further endings.

        `contents` are for a file that nobody but this process may write.
        """
        marks = cls((path.with_name(path.name + ending) for ending in ("", "-wal", *beside)), contents)
        if contents is not None:
            marks._log = path.with_name(f"{path.name}-wal"), 0
            marks.settle()
        return marks

    def settle(self) -> None:
        """Take what the files hold now as ours, after we wrote them."""
        if self._contents is not None and not self.lost:
            self._contents.settle()
            if self._log is not None:
                self._log = self._log[0], _size(self._log[0])

    def are_lost(self) -> bool:
        """Whether a name that led to a file leads to none now, or to another, or to other contents; looks anew."""
        if not self.lost:
            for path, mark in self._marks.items():
                now = _mark(path)
                if mark is None:
                    self._marks[path] = now
                elif mark != now:
                    self.lost = True
            if not self.lost and self._contents is not None and self._contents.are_foreign():
                self.overwritten()
            if self._log is not None and _size(self._log[0]) < self._log[1]:
                self.lost = True
        return self.lost

    def overwritten(self) -> None:
        """The main file holds something else now: what its log has for it would only spoil that, and stands aside."""
        self.lost = self._is_overwritten = True
        log_file = self._main.with_name(f"{self._main.name}-wal")
        aside = log_file.with_name(f"{log_file.name}.overwritten")
        with suppress(OSError):
            os.replace(log_file, aside)
            log.critical("%s was overwritten. The changes that were not yet in it are in %s.", self._main, aside)

    def close(self, *connections: sqlite3.Connection) -> None:
        """Close the connections to the file, and let go of it; into one that was overwritten nothing is written."""
        away = self._main.with_name(f"{self._main.name}.closing")
        is_away = False
        if self._is_overwritten:  # SQLite leaves a file alone that is not in its place when it is closed
            with suppress(OSError):
                os.rename(self._main, away)
                is_away = True
        try:
            for connection in connections:
                connection.close()
        finally:
            if is_away:
                os.rename(away, self._main)
            if self._contents is not None:
                self._contents.close()


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
