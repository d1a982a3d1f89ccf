"""`toolgrove restore`: a backup in the place of what is there, which is kept beside it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from toolgrove.cli.backup import places_of, reading_notary
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.store.backup import Restored, restore_backup


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "restore",
        parents=[shared],
        description="Put a backup back. It is checked first, and refused while a process uses the store. What was "
        "there is kept beside it.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a file that 'toolgrove backup' wrote")
    parser.add_argument(
        "--other-project",
        action="store_true",
        help="put it here though it is of another project: store, tokens and approvals are then those of that project",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Restore it; 1 if the audit log in it does not hold."""
    config = load(chosen)
    notary = reading_notary(config)
    with screen.waiting("Checking and restoring …"):
        restored = restore_backup(
            places_of(config),
            chosen.file,
            notary=notary,
            by=signature(),
            now=time.time(),
            other_project=chosen.other_project,
        )
    breach = restored.proof.breach
    form = {
        "made": restored.made,
        "project": restored.project,
        "anchor": str(restored.end),
        "lost": _lost(restored),
        "kept": list(map(str, restored.kept)),
        "stays": list(map(str, restored.stays)),
        "whole": restored.proof.whole,
        "problem": breach.problem if breach is not None else None,
    }
    screen.answer(form, *_told(restored), fold=False)
    if breach is not None:
        screen.say(f"The audit log in it does not hold: {breach.problem}. See 'toolgrove audit verify'.", "red")
    return int(breach is not None)


def _lost(restored: Restored) -> int:
    """How many audit records there were that the backup does not have, as far as this machine knows."""
    return 0 if restored.had is None else max(0, restored.had.number - restored.end.number)


def _told(restored: Restored) -> Iterator[Text]:
    project = f", of project {restored.project}" if restored.project else ""
    yield line(f"Restored the backup of {restored.made}{project}; its audit log ends at {restored.end}")
    if lost := _lost(restored):
        text = f"{lost} later audit record{'s are' if lost > 1 else ' is'} not in it: the next start marks a break."
        yield line(text, "yellow")
    for path in restored.stays:
        yield line(f"{path} stays as it is, and goes on after the break.")
    for path in restored.kept:
        yield line(f"Kept: {path}")
    yield line("Tokens and approvals are those of the backup: one that was revoked since then is good again.", "yellow")
