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
        names = list(map(os.fspath, paths))  # they are looked up at every write, and a Path takes longer
        self._marks = {name: _mark(_state(name)) for name in names}
        self._main = Path(names[0])
        self._contents = contents
        self._is_overwritten = False
        self._log: tuple[str, int] | None = None
        self.lost = False
        """Whether that was so at the last look."""

    @classmethod
    def of_database(cls, path: Path, *beside: str, contents: FileContents | None = None) -> FileMarks:
        """Those of a SQLite file and its write-ahead log, which may come later; `beside` are further endings.

        `contents` are for a file that nobody but this process may write.
        """
        marks = cls((path.with_name(path.name + ending) for ending in ("", "-wal", *beside)), contents)
        if contents is not None:
            marks._log = os.fspath(path.with_name(f"{path.name}-wal")), 0
            marks.settle()
        return marks

    def settle(self) -> None:
        """Take what the files hold now as ours, after we wrote them; looks anew whether one is lost."""
        if self.lost:
            return
        states = self._look()
        if self._contents is not None and not self.lost:
            self._contents.settle(states[0])
            if self._log is not None:
                self._log = self._log[0], _size(states[1])

    def are_lost(self) -> bool:
        """Whether a name that led to a file leads to none now, or to another, or to other contents; looks anew."""
        if not self.lost:
            states = self._look()
            if not self.lost and self._contents is not None and self._contents.are_foreign(states[0]):
                self.overwritten()
            if self._log is not None and _size(states[1]) < self._log[1]:
                self.lost = True
        return self.lost

    def _look(self) -> list[os.stat_result | None]:
        """The files as they are, in their order; a name that leads elsewhere is lost."""
        states: list[os.stat_result | None] = []
        for name, mark in self._marks.items():
            states.append(state := _state(name))
            now = _mark(state)
            if mark is None:
                self._marks[name] = now
            elif mark != now:
                self.lost = True
        return states

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


def _state(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except OSError:
        return None


def _mark(state: os.stat_result | None) -> tuple[int, int] | None:
    return None if state is None else (state.st_dev, state.st_ino)


def _size(state: os.stat_result | None) -> int:
    return 0 if state is None else state.st_size
