"""Files that are put in place together: what is to be moved is written down first, so that a crash leaves no mixture.

Until the plan is on the disk the old files are there, all of them. From then on the new ones count: whoever uses the
store next finishes what was begun.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("toolgrove.store")
_SIDES = ("", "-wal", "-shm")


@dataclass(frozen=True, kw_only=True, slots=True)
class RestorePlan:
    """Which staged file goes to which place; what is there goes beside it, under a name with the stamp."""

    store: Path
    stamp: str
    staged: Mapping[Path, Path]

    def write(self) -> None:
        """Put it on the disk: the moment from which on the new files count."""
        form = {"stamp": self.stamp, "staged": {str(place): str(staged) for place, staged in self.staged.items()}}
        path = _path(self.store)
        draft = path.with_name(f"{path.name}.draft")
        for folder in self._folders():
            _sync(folder)
        with draft.open("w", encoding="utf-8") as writing:
            json.dump(form, writing)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(draft, path)
        _sync(path.parent)

    def carry_out(self) -> list[Path]:
        """Move what is not moved yet; the files that were there, under their new names."""
        for place, staged in self.staged.items():
            if staged.exists():
                for there, beside in self._kept(place):
                    if there.exists() and not beside.exists():
                        _keep(there, beside, linked=there == place)
                os.replace(staged, place)
        for folder in self._folders():
            _sync(folder)
        _path(self.store).unlink(missing_ok=True)
        return [beside for place in self.staged for _, beside in self._kept(place) if beside.exists()]

    def take_back(self) -> None:
        """Put everything back as it was; for a plan that cannot be carried out."""
        for place, staged in self.staged.items():
            if not staged.exists():
                os.replace(place, staged)
            for there, beside in self._kept(place):
                if beside.exists() and there.exists() and there.samefile(beside):
                    beside.unlink()
                elif beside.exists():
                    os.replace(beside, there)
        _path(self.store).unlink(missing_ok=True)

    def settle(self) -> None:
        """Bring each database that is there into its one file, so that nothing of it is lost between two renames."""
        for place in self.staged:
            if place.with_name(f"{place.name}-wal").exists():
                with suppress(sqlite3.Error), closing(sqlite3.connect(place)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _kept(self, place: Path) -> Sequence[tuple[Path, Path]]:
        beside = f"{place.name}.before-restore-{self.stamp}"
        return [(place.with_name(place.name + side), place.with_name(beside + side)) for side in _SIDES]

    def _folders(self) -> set[Path]:
        return {place.parent for place in self.staged}


def is_cut_off(store: Path) -> bool:
    """Whether putting a backup in the place of this store was begun and not finished."""
    return _path(store).exists()


def finish(store: Path) -> None:
    """Finish what was begun, if anything; only for who owns the store."""
    try:
        form = json.loads(_path(store).read_text("utf-8"))
    except FileNotFoundError:
        return
    staged = {Path(place): Path(file) for place, file in form["staged"].items()}
    kept = RestorePlan(store=store, stamp=form["stamp"], staged=staged).carry_out()
    names = ", ".join(str(path) for path in kept)
    log.warning("A restore that was cut off is finished now. What was there before is kept: %s", names)


def _path(store: Path) -> Path:
    return store.with_name(f".{store.name}.restore-plan")


def _keep(there: Path, beside: Path, *, linked: bool) -> None:
    """Give a file a second name, so that its place is never empty; where there are no links, another name."""
    if linked:
        with suppress(OSError):
            os.link(there, beside)
            return
    os.rename(there, beside)


def _sync(folder: Path) -> None:
    """Make renames outlive the machine's power, where a folder can be synced."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)
