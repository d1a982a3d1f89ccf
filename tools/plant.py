"""Plants faults in the journal, in following and in claims, and asks the checker of histories (tests/histories) to find them.

Unlike the faults of tools/mutate.py, these are not for one test each: clients that draw what they do must come across
them within a bounded time, and the checker must call what it sees wrong.

python tools/plant.py            plants all, one after the other
python tools/plant.py WORD …     plants only those whose description or file holds one of the words
python tools/plant.py --check    plants none; says whether every one still fits the source
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutate import ROOT, SOURCE, copied

TESTS = ROOT / "tests"
WITHIN = 120.0
"""Seconds of work in which a planted fault must be found."""
PART = 12.0
_HUNG = 1_200


@dataclass(frozen=True, kw_only=True)
class Plant:
    """One change of the source, and what has to happen for it to show."""

    what: str
    file: str
    changes: Sequence[tuple[str, str]]
    faults: str = "none"
    store: str = "postgres"
    payers: int = 2
    part: float = PART

    def misfit(self) -> str | None:
        """Why it cannot be planted in the source as it is now."""
        path = SOURCE / self.file
        if not path.is_file():
            return f"there is no src/{self.file}"
        text = path.read_text()
        return next(
            (f"src/{self.file} does not hold exactly once: {old}" for old, _ in self.changes if text.count(old) != 1),
            None,
        )

    def put_into(self, source: Path) -> None:
        target = source / self.file
        text = target.read_text()
        for old, new in self.changes:
            text = text.replace(old, new)
        target.write_text(text)


_JOURNAL = "toolgrove/store/journal/"
PLANTS = (
    Plant(
        what="a change is kept if its number fits, whatever it rests on",
        file=_JOURNAL + "tables/entries.py",
        changes=[("if effects.parent != newest:", "if effects.base != revision:")],
    ),
    Plant(
        what="what rests on a refused entry is kept",
        file=_JOURNAL + "tables/entries.py",
        changes=[
            (
                "outcomes.append(Behind(parent=effects.parent, newest=newest))\n",
                "outcomes.append(Behind(parent=effects.parent, newest=newest))\n                    newest = effects.id\n",
            )
        ],
    ),
    Plant(
        what="an idempotency key is not kept with its change",
        file=_JOURNAL + "tables/entries.py",
        changes=[("        if kept:\n            self.keys.keep(connection, kept)\n", "")],
    ),
    Plant(
        what="the record of a change is written after its transaction",
        file=_JOURNAL + "tables/entries.py",
        changes=[
            ("        self._keep_records(connection, audit, heard)\n        filled", "        self._late = audit\n        filled"),
            (
                '        """Bring the copies up to the head, then the mark, so that it is never ahead of them."""\n',
                '        self._keep_records(connection, self.__dict__.pop("_late", ()), ())\n',
            ),
        ],
        faults="lost_commit,kill",
    ),
    Plant(
        what="a change whose COMMIT nobody answered is taken for lost",
        file=_JOURNAL + "postgres/ledger.py",
        changes=[("is_kept = line is not None and line[0] == last.line", "is_kept = line is None and last is None")],
        faults="lost_commit",
    ),
    Plant(
        what="success is told before the database has answered COMMIT",
        file=_JOURNAL + "postgres/ledger.py",
        changes=[("                raise doubt from None\n", "                return outcomes\n")],
        faults="cut_at_commit",
    ),
    Plant(
        what="a change that was refused is not taken back",
        file="toolgrove/tools/pending_writes.py",
        changes=[("            newest.recorded.take_back()\n", "")],
    ),
    Plant(
        what="a read does not wait for the version that it brings",
        file="toolgrove/tools/source.py",
        changes=[
            ('following.prepare(call.at_least, call.arguments.get("versionToken"))', 'following.prepare(call.arguments.get("versionToken"))'),
            ("            if call.at_least is not None:\n", "            if call.at_least is None and runs < 0:\n"),
        ],
    ),
    Plant(
        what="one followed change in seven does not reach the nodes",
        file="toolgrove/tools/following.py",
        changes=[("self._workspace.follow(effects)", "self._workspace.follow(effects._replace(after={}) if effects.revision % 7 == 0 else effects)")],
    ),
    Plant(
        what="the undo stack does not follow what others did",
        file="toolgrove/tree/workspace.py",
        changes=[("self._undo_stacks.setdefault(agent, UndoStacks()).shift(effects.move, effects.commits)\n        if effects.folds", "self._undo_stacks.setdefault(agent, UndoStacks())\n        if effects.folds")],
    ),
    Plant(
        what="bookmarks that others set are not followed",
        file="toolgrove/tree/workspace.py",
        changes=[("                self.bookmarks.point(agent, label, node_id)\n            case SnapshotChange(snapshot=snapshot, dropped=dropped):\n                self.snapshots = {key", "                pass\n            case SnapshotChange(snapshot=snapshot, dropped=dropped):\n                self.snapshots = {key")],
    ),
    Plant(
        what="the numbers of nodes that others made are given out again",
        file="toolgrove/tree/workspace.py",
        changes=[("self.tree.follow(effects.after, serial=mark.serial, group_serial=mark.group_serial)", "self.tree.follow(effects.after, serial=self.tree.serials[0], group_serial=mark.group_serial)")],
    ),
    Plant(
        what="a failover to a standby that is behind is not noticed",
        file=_JOURNAL + "postgres/following.py",
        changes=[("    if head.revision <= revision or (", "    if head.revision <= revision:\n        return News()\n    if (")],
        faults="failover",
    ),
    Plant(
        what="a claim that was given up meanwhile is good all the same",
        file=_JOURNAL + "postgres/settling.py",
        changes=[("    return not is_held and connection", "    return not is_held and is_held and connection")],
        faults="forgotten",
        payers=8,
        part=60.0,
    ),
    Plant(
        what="an approval can be claimed again while its call runs",
        file="toolgrove/call/inbox.py",
        changes=[('if same and one.at(now).state == "approved":', 'if same and one.at(now).state in ("approved", "claimed"):')],
        payers=4,
    ),
    Plant(
        what="an approval that was used is good again",
        file="toolgrove/call/inbox.py",
        changes=[('if same and one.at(now).state == "approved":', 'if same and one.at(now).state in ("approved", "used"):')],
        store="sqlite",
    ),
    Plant(
        what="a rejection is taken for an approval once it was told",
        file="toolgrove/call/inbox.py",
        changes=[('if same and one.at(now).state == "approved":', 'if same and one.at(now).state in ("approved", "rejected"):')],
        payers=4,
    ),
    Plant(
        what="the undo stack follows twice",
        file="toolgrove/tree/workspace.py",
        changes=[(
            "            self._undo_stacks.setdefault(agent, UndoStacks()).shift(effects.move, effects.commits)\n        if effects.folds",
            "            self._undo_stacks.setdefault(agent, UndoStacks()).shift(effects.move, effects.commits)\n"
            "            self._undo_stacks.setdefault(agent, UndoStacks()).shift(effects.move, effects.commits)\n        if effects.folds",
        )],
    ),
)  # fmt: skip


def finds(plant: Plant, seed: str) -> tuple[bool, str]:
    """Whether the checker finds it, and what it said first."""
    with copied() as source:
        plant.put_into(source)
        options = ("--seconds", str(WITHIN), "--part", str(plant.part), "--until-found", "--seed", seed)
        where = ("--store", plant.store, "--faults", plant.faults, "--payers", str(plant.payers))
        command = [sys.executable, "-m", "histories", *options, *where]
        environ = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [*command, "--longest", "0.6", "--rest", "0.4", "--patience", "15"],
                cwd=TESTS,
                env=environ,
                capture_output=True,
                text=True,
                timeout=_HUNG,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, "it did not end"
    first = re.search(r"^[a-z ]+: \d+\n.*$", done.stdout, re.MULTILINE)
    return done.returncode == 1 and first is not None, first[0] if first else (done.stdout + done.stderr)[-1000:]


def main() -> int:
    words = sys.argv[1:]
    wrong = [f"{plant.what}: {reason}" for plant in PLANTS if (reason := plant.misfit())]
    if wrong:
        print("\n".join(wrong))
        return 1
    if words == ["--check"]:
        return 0
    chosen = [one for one in PLANTS if not words or any(word in one.what or word in one.file for word in words)]
    missed = 0
    for plant in chosen:
        began = time.monotonic()
        found, said = finds(plant, os.environ.get("HISTORIES_SEED", "plant"))
        missed += not found
        print(
            f"{'found' if found else 'MISSED'} in {time.monotonic() - began:.0f} s: {plant.what}\n    {said[:300]}",
            flush=True,
        )
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
