"""Live the day on a disk that fails, and look at what is there afterwards; what is wrong, as lines of JSON.

    LD_PRELOAD=DISK SWEEP_DISK=DISK python -m sweep.program HOW FOLDER MOST SEED

HOW is ``crashes``, ``backups`` or the name of a fault (``EIO``, ``no room``, ``short``, ``dies``). MOST is how many
calls of each part of the day are tried, drawn by the SEED; with 0 it is each of them, or 2,000 of more.

``crashes`` lives the day once, and then makes the files as they were between any two calls: as a killed process leaves
them, with the next write half done, and after a power cut that took what was not synced. The faults live a part of the
day again for each call of it, in a process of their own.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from zipfile import BadZipFile, ZipFile

import anyio

from grove_kit import ManualClock
from naive_journal import exported, unwound
from sweep.day import PARTS, Book, Part, Portrait, Refused, Step, World, look, opened
from sweep.disk import DIED, Disk, Noted, noted
from sweep.files import Files
from toolgrove import Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.backup import Places, make_backup
from toolgrove.store.unusable import StoreUnusable

ACKS = "acks"
WAYS = ("a kill", "half done", "power cut")
ENOUGH = 2_000
PATIENCE = 30
"""Seconds after which a process that was to end is taken for stuck."""
BESIDE = ("undo", "redo")
"""Calls that are made only to see what they would do are on record as well."""


class Wrong(Exception):
    """Something that must not be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A part of the day, the files that it begins with, and the books of a life without faults: one for each step."""

    part: Part
    folder: Path
    notes: Path
    book: Book
    books: Sequence[Book]


async def live(
    folder: Path,
    steps: Mapping[str, Step],
    book: Book,
    told: Callable[[Book], None],
    silent: frozenset[str],
    hit: Callable[[], str],
) -> None:
    """Open a project, do what is to be done, and close it; `told` gets the book whenever something is acknowledged."""
    clock = ManualClock()
    clock.now = book.now
    async with opened(folder, clock) as grove:
        seen, version = await patiently(grove)
        if book.portrait and not same(book.portrait, seen):
            raise Wrong(f"after the start: {difference(book.portrait, seen)}")
        book = replace(Book.of(book.text()), portrait=seen, version=version)
        told(book)
        for name, step in steps.items():
            trying = Book.of(book.text())
            world = World(grove, clock, trying)
            before = hit()
            try:
                await step(world)
            except (Refused, OSError, StoreUnusable) as refused:
                seen, _ = await patiently(grove)
                if not same(book.portrait, seen):
                    raise Wrong(f"{name} was refused ({refused}) and done: {difference(book.portrait, seen)}") from None
                if before and name == "last":
                    raise Wrong(f"{name} is refused, though the disk is well again: {refused}") from None
                continue
            seen, version = await patiently(grove)
            if same(book.portrait, seen) and name not in silent:
                raise Wrong(f"{name} was acknowledged and changed nothing")
            book = replace(trying, portrait=seen, version=version, now=clock.now)
            told(book)


async def patiently(grove: Grove) -> tuple[Any, str]:
    """Look, and again if that failed."""
    try:
        return await look(grove)
    except (OSError, StoreUnusable, KeyError):
        return await look(grove)


async def check(folder: Path, books: Sequence[Book], cut: bool) -> None:
    """See that a project opens with what one of the books says, proves itself and goes on; Wrong if not."""
    clock = ManualClock()
    clock.now = max(book.now for book in books)
    async with opened(folder, clock) as grove:
        seen, version = await look(grove)
        book = next((one for one in books if same(one.portrait, seen, cut=cut)), None)
        if book is None and not books[0].portrait and seen["tree"] == books[-1].portrait["tree"]:
            book = books[0]  # a new project: nothing was acknowledged yet
        if book is None:
            raise Wrong(f"not what was acknowledged: {[difference(one.portrait, seen) for one in books]}")
        for keyed in book.keyed if book.now == clock.now else ():  # they are kept for a day
            answer = await (await grove.agent(keyed.agent)).call(keyed.tool, dict(keyed.arguments))
            if answer != keyed.answer:
                raise Wrong(f"the key {keyed.arguments['idempotencyKey']} is answered with {answer}")
        form = {
            "parentNodeId": "root",
            "payloadType": "After",
            "versionToken": (books[0].version and book.version) or version,
        }
        after = await (await grove.agent("ann")).call("add_child", form)
        if "error" in after:
            raise Wrong(f"nothing can be written any more, or the version is lost: {after['error']}")
        proof = await grove.audit_log.verify()
        if proof.breach is not None or proof.breaks:
            raise Wrong(f"the audit log: {proof.breach} {proof.breaks}")
        records = await everything(grove)
        newest, _ = await look(grove)
    kept = {one["number"]: one for one in [*records, *archived(folder)]}
    counted = Counter((one["operation"], one.get("version")) for one in kept.values() if one["outcome"] == "success")
    for change in book.changes:
        found = counted[change.tool, change.version]
        if found != 1 and not (found and change.tool in BESIDE):
            raise Wrong(f"{change.tool} at {change.version} is on record {found} times")
    with closing(sqlite3.connect(folder / "grove.db")) as connection:
        bodies = [
            [body for (body,) in connection.execute(query)]
            for query in ("SELECT body FROM node", "SELECT body FROM journal ORDER BY revision")
        ]
    if next(unwound(*bodies))[1] != exported(newest["tree"]):
        raise Wrong("the tables are not the tree")


async def everything(grove: Grove) -> list[Any]:
    """All records in the store."""
    page = await grove.audit_log.records(AuditQuery(limit=1_000))
    records = list(page.records)
    while page.next is not None:
        page = await grove.audit_log.records(AuditQuery(limit=1_000, after=page.next))
        records += page.records
    return records


def same(told: Portrait, seen: Portrait, *, cut: bool = False) -> bool:
    """Whether what is seen is what was told.

    An approval whose use could not be written down is claimed until the next start, which finds out whether it was
    used. A pin that nobody gave may be gone after a power cut, and is made again.
    """
    left = {name for name in (*told, *seen) if told.get(name) != seen.get(name)} - ({"pins"} if cut else set())
    if left == {"approvals"} and "claimed" in (*told["approvals"], *seen["approvals"]):
        return len(told["approvals"]) == len(seen["approvals"])
    return not left


def _make_backup(project: Path, file: Path) -> None:
    places = Places(store=project / "grove.db", state=project / "state" / "state.db", log=project / "audit.jsonl")
    make_backup(places, file, notary=None, made="2030-01-01T00:00:00.000+00:00")


def _flaw(file: Path) -> str | None:
    """What is wrong with a backup; None if it is whole."""
    try:
        with ZipFile(file) as backup:
            return None if backup.testzip() is None and "store.db" in backup.namelist() else "is not whole"
    except BadZipFile as error:
        return str(error)


def archived(folder: Path) -> list[Any]:
    """The records in all archives."""
    lines = [line for path in folder.glob("*archive.jsonl") for line in path.read_text().splitlines()]
    return [record for record in map(json.loads, lines) if "number" in record]


def difference(one: Any, other: Any) -> Any:
    """What differs between two portraits."""
    return {
        name: f"{str(one.get(name))[-200:]} / {str(value)[-200:]}"
        for name, value in other.items()
        if one.get(name) != value
    }


class Sweep:
    """The day, part by part, in a folder to work in."""

    def __init__(self, folder: Path, most: int, seed: int) -> None:
        """`most` is how many calls of each part are tried; 0 is as many as make sense."""
        self._folder, self._most, self._pick = folder, most, Random(seed)
        self._disk = Disk()
        self._place = folder / "project"
        self.tried = self.all = 0
        self.wrong: list[str] = []

    def parts(self) -> list[Start]:
        """Live the day without a fault, and keep how each part begins and what was done to its files."""
        starts: list[Start] = []
        book = Book()
        self._place.mkdir()
        for number, part in enumerate(PARTS):
            if part.start is not None:
                shutil.rmtree(self._place)
                part.start(self._place)
                book = self._as_it_is()
            if part.before:
                book = self._lived(part, part.before, book)[-1]
                (self._place / ACKS).unlink()
            start = self._folder / f"start-{number}"
            shutil.copytree(self._place, start)
            notes = self._folder / f"notes-{number}"
            self._disk.note(self._place, notes)
            books = self._lived(part, part.steps, book)
            self._disk.rest()
            starts.append(Start(part=part, folder=start, notes=notes, book=book, books=books))
            (self._place / ACKS).unlink()
            book = books[-1]
        return starts

    def _as_it_is(self) -> Book:
        """What is in a project of which nothing is known yet."""
        aside, place = self._folder / "aside", self._place
        shutil.copytree(place, aside)
        self._place = aside
        (book,) = self._lived(PARTS[0], {}, Book())
        self._place = place
        shutil.rmtree(aside)
        return book

    def _lived(self, part: Part, steps: Mapping[str, Step], book: Book) -> list[Book]:
        books: list[Book] = []
        with (self._place / ACKS).open("ab", buffering=0) as acks:

            def told(one: Book) -> None:
                books.append(one)
                acks.write(f"{one.text()}\n".encode())

            anyio.run(live, self._place, steps, book, told, part.silent, self._disk.hit)
        return books

    def backups(self) -> None:
        """Have a process die while it makes a backup, at each call; the next backup leaves nothing else."""
        start = self.parts()[2]
        shutil.rmtree(self._place)
        shutil.copytree(start.folder, self._place)
        target = self._folder / "backups"
        target.mkdir()
        count = self._backed_up(target, 0)
        for number in sorted(self._drawn(range(1, count + 1))):
            self.tried += 1
            self._backed_up(target, number)
            _make_backup(self._place, target / "next.zip")
            left = {path.name for path in target.iterdir()} - {"next.zip"}
            if left - {"cut.zip"}:
                self.wrong.append(f"call {number} of {count}: {sorted(left)} is left behind")
            for path in target.iterdir():
                problem = _flaw(path) if path.is_file() else None
                if problem is not None:
                    self.wrong.append(f"call {number} of {count}: {path.name} {problem}")
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _backed_up(self, target: Path, number: int) -> int:
        """Make a backup in a process of its own that dies at a call; how many calls there were."""
        told = self._folder / "told"
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)
            self._disk.fail(target, number, "dies")
            _make_backup(self._place, target / "cut.zip")
            told.write_text(str(self._disk.rest()))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) not in (0, DIED):
            self.wrong.append(f"call {number}: ended with {status}")
        if number == 0:
            (target / "cut.zip").unlink()
        return int(told.read_text())

    def crashes(self) -> None:
        """Crash between any two calls."""
        for start in self.parts():
            files, notes = Files(start.folder), list(noted(start.notes))
            drawn = self._drawn([at for at, one in enumerate(notes) if one.what != "s" and one.path != ACKS])
            for number, one in enumerate(notes):
                if number in drawn:
                    where = f"{start.part.name}, call {number} ({one.what} {one.path})"
                    ways = WAYS if self._most == 0 else (self._pick.choice(WAYS),)
                    self._crash(where, ways, start, files, one)
                files.take(one)

    def _crash(self, where: str, ways: Sequence[str], start: Start, files: Files, one: Noted) -> None:
        scratch = self._folder / "scratch"
        for way in ways:
            if way == "half done" and one.what != "w":
                continue
            files.lay(scratch, torn=one if way == "half done" else None, cut=self._pick if way == "power cut" else None)
            self._check(f"before {where}, {way}", scratch, start, files.text(ACKS), cut=way == "power cut")

    def faults(self, fault: str) -> None:
        """Have each call fail once."""
        for start in self.parts():
            count = self._faulty(start, 0, fault)
            for number in sorted(self._drawn(range(1, count + 1))):
                self._faulty(start, number, fault)

    def _faulty(self, start: Start, number: int, fault: str) -> int:
        """Live a part again in a process of its own whose call with this number fails; how many calls there were."""
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(start.folder, self._place)
        told = self._folder / "told"
        told.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            self._die_trying(start, number, fault, told)
        _, status = os.waitpid(child, 0)
        hit, count, problem = json.loads(told.read_text()) if told.exists() else ("", 0, "")
        where = f"{start.part.name}, call {number} of {count} ({hit}), {fault}"
        if os.waitstatus_to_exitcode(status) not in (0, DIED):
            self.wrong.append(f"{where}: ended with {status}")
        if problem:
            self.wrong.append(f"{where}: {problem}")
        acks = (self._place / ACKS).read_text() if (self._place / ACKS).exists() else ""
        self._check(where, self._place, start, acks, died=not told.exists(), is_same_life=False)
        return int(count)

    def _die_trying(self, start: Start, number: int, fault: str, told: Path) -> None:
        """In the process of its own."""
        signal.alarm(PATIENCE)
        problem = ""
        self._disk.fail(self._place, number, fault)
        try:
            self._lived(start.part, start.part.steps, start.book)
        except Wrong as wrong:
            problem = str(wrong)
        except (StoreUnusable, OSError) as refused:
            problem = "" if self._disk.hit() else repr(refused)
        except BaseException:
            problem = traceback.format_exc(limit=-6)
        count = self._disk.rest()
        told.write_text(json.dumps([self._disk.hit(), count, problem]))
        os._exit(0)

    def _check(
        self,
        where: str,
        folder: Path,
        start: Start,
        acks: str,
        *,
        cut: bool = False,
        died: bool = True,
        is_same_life: bool = True,
    ) -> None:
        """See that there is what was acknowledged, or that and the step that a process died in."""
        self.tried += 1
        books = [Book.of(line) for line in acks.splitlines()]
        known = [books[-1] if books else start.book]
        if (died or not books) and len(books) < len(start.books):
            following = start.books[len(books)]
            known.append(following if is_same_life else following.lived_again(known[0]))
        try:
            anyio.run(check, folder, known, cut)
        except Wrong as wrong:
            self.wrong.append(f"{where}: {wrong}")
        except BaseException:
            self.wrong.append(f"{where}: {traceback.format_exc(limit=-6)}")

    def _drawn(self, calls: Sequence[int]) -> Collection[int]:
        self.all += len(calls)
        return set(self._pick.sample(calls, min(self._most or ENOUGH, len(calls))))


def main(how: str, folder: Path, most: int, seed: int) -> None:
    """Do it, and say what was wrong."""
    logging.disable()
    sweep = Sweep(folder, most, seed)
    match how:
        case "crashes":
            sweep.crashes()
        case "backups":
            sweep.backups()
        case fault:
            sweep.faults(fault)
    print(json.dumps({"tried": sweep.tried, "all": sweep.all, "wrong": sweep.wrong}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
