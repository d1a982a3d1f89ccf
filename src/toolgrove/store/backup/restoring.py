"""Putting a backup back: checked first, then put in place at once, with what was there kept beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from toolgrove.store.audit import Notary, Place, Proof, private
from toolgrove.store.backup.checking import check_state, check_store, is_whole, project_at
from toolgrove.store.backup.contents import ARCHIVE, LOG, STATE, STORE, Manifest, Places, unreadable
from toolgrove.store.journal.sqlite.owner import Owner
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.project import Known
from toolgrove.store.restore_plan import RestorePlan, finish
from toolgrove.store.state import Deed, SqliteDeeds, StateFile, project_of
from toolgrove.store.unusable import StoreUnusable

_SIDES = ("", "-wal", "-shm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """A backup that was put back: when it was made, of which project it is, where its audit log ends, and where the log
    had stood.

    `kept` are the files that were there before, under their new names; `stays` are logs that were left as they are.
    """

    made: str
    project: str
    end: Place
    had: Place | None
    proof: Proof
    kept: Sequence[Path]
    stays: Sequence[Path]


def restore_backup(
    places: Places, file: Path, *, notary: Notary | None, by: str, now: float, other_project: bool = False
) -> Restored:
    """Put a backup in place; raises StoreUnusable, and changes nothing, while a process uses the store.

    The backup of another project is refused, unless `other_project` asks for it: then what was here gives way whole.
    The next start puts on record who did it.
    """
    with _owned(places.store), _opened(file) as backup, _Staged() as staged:
        manifest = Manifest.read(backup, file)
        present = set(backup.namelist())
        if STORE not in present:
            raise unreadable(file)
        staged.take(backup, STORE, places.store, file)
        checked = check_store(staged[places.store], notary)
        if checked.end != manifest.end:
            raise unreadable(file)
        known = None if not checked.project else _known(places)
        is_other = known is not None and known.project != checked.project
        if known is not None and is_other and not other_project:
            raise _of_another(file, checked.project, known)
        _settle_key(staged[places.store], checked.key, notary, file, is_other=is_other)
        if places.state is not None and STATE in present:
            staged.take(backup, STATE, places.state, file)
            check_state(staged[places.state])
        elif places.state is not None and is_other:
            staged.make(places.state)
        if places.state is not None and places.state in staged:
            _note(staged[places.state], manifest, checked.project, by, now)
        stays: list[Path] = []
        for place, name in ((places.log, LOG), (places.archive, ARCHIVE)):
            # A log only ever grows: the one that is there proves what the backup does not have.
            if place is not None and place.exists() and is_whole(place, notary) and not (is_other and name in present):
                stays.append(place)
            elif place is not None and name in present:
                staged.take(backup, name, place, file)
        had = None if notary is None else notary.noted()
        kept = staged.put(places.store, datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ"))
    return Restored(
        made=manifest.made,
        project=checked.project,
        end=checked.end,
        had=had,
        proof=checked.proof,
        kept=kept,
        stays=stays,
    )


def _known(places: Places) -> Known | None:
    """The project that is here, by its store, or by what people decided in it."""
    if (found := project_at(places.store)) is not None or places.state is None:
        return found
    stated = project_of(places.state)
    return None if stated is None else Known(stated, places.state)


def _of_another(file: Path, project: str, known: Known) -> StoreUnusable:
    return StoreUnusable(
        kind="backup",
        where=file,
        problem=f"is of project {project}, and {known.place} is of project {known.project}",
        advice="Nothing was changed. To have that project here instead, with its tokens and approvals, add "
        "--other-project.",
    )


def _settle_key(store: Path, key: str, notary: Notary | None, file: Path, *, is_other: bool) -> None:
    """Refuse a log that another key sealed; where there is no key yet, or another project
    was asked for, let it go on under the one that comes."""
    if notary is not None and notary.has_key and key not in ("", notary.public) and not is_other:
        raise StoreUnusable(
            kind="backup",
            where=file,
            problem="has an audit log that another key sealed",
            advice="Restore it where its key is; or move the key of this project away, and the log goes on under a new "
            "one, with a marked change.",
        )
    if key and (is_other or notary is None or not notary.has_key):
        with closing(sqlite3.connect(store)) as connection, connection:
            head = Head.read(connection)
            if head is not None:
                head._replace(audit_key="").write(connection)


def _note(state: Path, manifest: Manifest, project: str, by: str, now: float) -> None:
    details = {"made": manifest.made, "anchor": str(manifest.end), "project": project}
    with StateFile(state) as file:
        file.belong(project)
        SqliteDeeds(file).add(Deed(kind="audit", operation="audit.restored", at=now, by=by, details=details))


@contextmanager
def _owned(store: Path) -> Iterator[None]:
    """Keep every process from using a store meanwhile."""
    owner = Owner(store)
    try:
        finish(store)
        yield
    finally:
        owner.release()


@contextmanager
def _opened(file: Path) -> Iterator[ZipFile]:
    try:
        with file.open("rb") as raw, closing(ZipFile(raw)) as backup:
            yield backup
    except (BadZipFile, EOFError):
        raise unreadable(file) from None


class _Staged:
    """Files beside the places that they are meant for; what is not put in place is removed again."""

    def __init__(self) -> None:
        self._files: dict[Path, Path] = {}

    def __enter__(self) -> _Staged:
        return self

    def __exit__(self, *_: object) -> None:
        for staged in self._files.values():
            for side in (*_SIDES, "-journal"):
                staged.with_name(staged.name + side).unlink(missing_ok=True)

    def __getitem__(self, place: Path) -> Path:
        return self._files[place]

    def __contains__(self, place: Path) -> bool:
        return place in self._files

    def make(self, place: Path) -> None:
        """Have an empty state in a place."""
        staged = self._beside(place)
        with StateFile(staged):
            pass

    def _beside(self, place: Path) -> Path:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = place.with_name(f".{place.name}.restoring")
        staged.unlink(missing_ok=True)
        self._files[place] = staged
        return staged

    def take(self, backup: ZipFile, name: str, place: Path, file: Path) -> None:
        """Extract a member; its checksum is looked at on the way."""
        staged = self._beside(place)
        try:
            with backup.open(name) as member, open(staged, "xb", opener=private) as writing:
                shutil.copyfileobj(member, writing)
                writing.flush()
                os.fsync(writing.fileno())
        except (BadZipFile, EOFError, ValueError):
            raise unreadable(file) from None

    def put(self, store: Path, stamp: str) -> list[Path]:
        """Put all in place, or none, also where this process is killed; the files that were there, under new names."""
        plan = RestorePlan(store=store, stamp=stamp, staged=self._files)
        plan.settle()
        plan.write()
        try:
            return plan.carry_out()
        except BaseException:
            plan.take_back()
            raise
