"""`toolgrove backup`: store, state and audit logs of a project in one file, also while it is served."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.config import Config
from toolgrove.notary import notary_of
from toolgrove.notation.times import to_milliseconds
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import Notary
from toolgrove.store.backup import Backup, Places, make_backup


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "backup",
        parents=[shared],
        description="Write the store, the state and the audit logs to one file, as they are at one moment; a gateway "
        "may go on meanwhile. The key of the audit log is not in it.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write; there must be none yet")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Make it; 1 if the audit log in it does not hold."""
    config = load(chosen)
    places, notary = places_of(config), reading_notary(config)
    if not places.store.exists():
        raise ValueError(f"{places.store} is not there yet: nothing has been called since the project file names it")
    with screen.waiting("Copying and checking …"):
        backup = make_backup(places, chosen.file, notary=notary, made=to_milliseconds(time.time()))
    breach = backup.proof.breach
    form = {
        "file": str(backup.file),
        "bytes": backup.size,
        "members": list(backup.members),
        "anchor": str(backup.end),
        "project": backup.project,
        "auditKey": backup.key or None,
        "whole": backup.proof.whole,
        "problem": breach.problem if breach is not None else None,
    }
    screen.answer(form, line(_made(backup)), line(_ends(backup)), fold=False)
    if breach is not None:
        screen.say(f"The audit log in it does not hold: {breach.problem}. See 'toolgrove audit verify'.", "red")
    return int(breach is not None)


def places_of(config: Config) -> Places:
    """Where the project keeps what a backup holds; ValueError where it has no store in a file."""
    workspace = config.workspace
    if workspace.is_database:
        raise ValueError(
            "this project is in a database: back that up with its own tools, such as pg_dump, or copy it with "
            "'toolgrove migrate'"
        )
    if workspace.store_path is None:
        raise ValueError("this project has its workspace in memory; keep it with workspace.store: sqlite:PATH")
    return Places(
        store=workspace.store_path, state=config.state_file, log=workspace.audit_log, archive=workspace.archive_path
    )


def reading_notary(config: Config) -> Notary | None:
    """The notary of the project, with its key if that is here."""
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is not None:
        notary.read()
    return notary


def _ends(backup: Backup) -> str:
    project = f"It is of project {backup.project}, and its" if backup.project else "Its"
    return f"{project} audit log ends at {backup.end}"


def _made(backup: Backup) -> str:
    size = f"{backup.size / 1024**2:,.1f} MB"
    return f"Wrote {backup.file} ({size}) with {', '.join(backup.members)}; all of it was checked."
