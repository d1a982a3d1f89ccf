"""Making a backup: everything as it is at one moment, while others go on writing.

It is put together in a folder of its own beside the file that it becomes, and appears under that name whole, or not at
all. A process that is killed meanwhile leaves that folder, which holds everything; the next backup in the same place
removes it. Whoever works in such a folder holds a lock in it that dies with the process, so that two backups at once
leave each other alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from toolgrove.store.audit import Notary, Proof, private
from toolgrove.store.audit.chain import Place
from toolgrove.store.backup.checking import check_state, check_store
from toolgrove.store.backup.contents import ARCHIVE, LOG, STATE, STORE, Manifest, Places
from toolgrove.store.journal.sqlite.compaction import prepare
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.owner import Owner
from toolgrove.store.journal.sqlite.schema import connect_reader
from toolgrove.store.private_file import take_name
from toolgrove.store.unusable import StoreUnusable

_BLOCK = 1024**2
_PREFIX = ".toolgrove-backup-"
_WHOLE = "backup.zip"


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A backup that was made: its file, what is in it, of which project it is, where its audit log ends, its key, and
    whether that holds."""

    file: Path
    size: int
    members: Sequence[str]
    end: Place
    key: str
    proof: Proof
    project: str


def make_backup(places: Places, file: Path, *, notary: Notary | None, made: str) -> Backup:
    """Write a backup to a new file, readable by its owner only; nobody has to stop for it, and nobody waits."""
    if file.exists():
        raise FileExistsError(f"{file} is there already, and a backup replaces nothing; name another file")
    _sweep(file.absolute().parent)
    with _working_folder(file.absolute().parent) as folder:
        _copy_all(places, folder)
        checked = check_store(folder / STORE, notary)
        if (folder / STATE).exists():
            check_state(folder / STATE)
        members = [member for member in (STORE, STATE, LOG, ARCHIVE) if (folder / member).exists()]
        made_here = folder / _WHOLE
        manifest = Manifest(made=made, end=checked.end, key=checked.key, project=checked.project)
        _write(made_here, folder, members, manifest)
        take_name(made_here, file)
    return Backup(
        file=file,
        size=file.stat().st_size,
        members=members,
        end=checked.end,
        key=checked.key,
        proof=checked.proof,
        project=checked.project,
    )


@contextmanager
def _working_folder(place: Path) -> Iterator[Path]:
    """A folder that others do not take for one that was left behind."""
    folder, owner = _locked_folder(place)
    try:
        yield folder
    finally:
        owner.release()
        shutil.rmtree(folder, ignore_errors=True)


def _locked_folder(place: Path) -> tuple[Path, Owner]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=place, prefix=_PREFIX))
        with suppress(FileNotFoundError):  # somebody swept it, since it was empty
            return folder, Owner(folder / STORE)


def _sweep(place: Path) -> None:
    """Remove the folders of backups whose process was killed."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(StoreUnusable, OSError):
            if not (folder / f"{STORE}-lock").exists():
                folder.rmdir()  # only if it is empty
                continue
            Owner(folder / STORE).release()  # nobody works in it
            shutil.rmtree(folder, ignore_errors=True)


def _copy_all(places: Places, folder: Path) -> None:
    # A log that ends before the store is completed from it at the next start, so it is copied first. An archive may
    # hold what the store still has, but not the other way round, so it comes last.
    if places.log is not None:
        _copy_lines(places.log, folder / LOG)
    with ExitStack() as stack:
        moments = [(places.store, STORE, stack.enter_context(_at_a_moment(places.store)))]
        # The state a moment after the store: an approval that is used there must not be good here.
        if places.state is not None and places.state.exists():
            moments.append((places.state, STATE, stack.enter_context(_at_a_moment(places.state))))
        for path, name, source in moments:
            try:
                _copy_database(source, folder / name)
            except sqlite3.Error as error:
                raise unusable(path, error) from None
    if places.archive is not None:
        _copy_lines(places.archive, folder / ARCHIVE)


def _at_a_moment(path: Path) -> closing[sqlite3.Connection]:
    """A connection that sees a file as it is now, whatever is written meanwhile."""
    try:
        connection = connect_reader(path)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        raise unusable(path, error) from None
    return closing(connection)


def _copy_database(source: sqlite3.Connection, target: Path) -> None:
    """Copy a database, and leave out the pages that are free."""
    os.close(private(target, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        prepare(copy)
        copy.execute("VACUUM")


def _copy_lines(source: Path, target: Path) -> None:
    """Copy the whole lines of a log that may be written meanwhile; one that is not there yet has none."""
    try:
        reading = source.open("rb")
    except FileNotFoundError:
        return
    with reading, open(target, "xb", opener=private) as writing:
        left = os.fstat(reading.fileno()).st_size
        whole = 0
        while left and (block := reading.read(min(left, _BLOCK))):
            left -= len(block)
            end = block.rfind(b"\n")
            if end >= 0:
                whole = writing.tell() + end + 1
            writing.write(block)
        writing.truncate(whole)


def _write(file: Path, folder: Path, members: Sequence[str], manifest: Manifest) -> None:
    with open(file, "xb", opener=private) as raw:
        with ZipFile(raw, "w", ZIP_DEFLATED, compresslevel=1) as backup:
            manifest.write(backup)
            for name in members:
                backup.write(folder / name, name)
        raw.flush()
        os.fsync(raw.fileno())
