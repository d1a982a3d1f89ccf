"""`toolgrove migrate`: a project from one store to another, or a database made ready for this version."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import Config
from toolgrove.config.workspace import SQLITE
from toolgrove.database import address_of
from toolgrove.store.moving import Moved, Place, SqlitePlace, move
from toolgrove.store.postgres import POSTGRESQL, needing_psycopg

_SHOWN = 16


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "migrate",
        parents=[shared],
        description="Move journal, audit log and state from one store to another, such as sqlite:data/grove.db and "
        "postgresql://host/grove. Both sides are counted and hashed before the move counts; the first stays as it is, "
        "and the second must be empty. With one address of a database, bring its tables to this version.",
    )
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="from where, and to where; or one database")
    parser.add_argument(
        "--app-role", metavar="ROLE", help="a role of the database that may read and write rows there, and nothing else"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Move, or make ready."""
    config = load(chosen)
    if len(chosen.addresses) > 2:
        raise ValueError("name two stores, from where and to where, or one database to make ready")
    *rest, last = chosen.addresses
    if not rest and not last.startswith(POSTGRESQL):
        raise ValueError(
            "name two stores, from where and to where: toolgrove migrate sqlite:data/grove.db postgresql://…"
        )
    if chosen.app_role is not None and not last.startswith(POSTGRESQL):
        raise ValueError("--app-role is for a database; leave it out")
    moved: list[Moved] = []
    if rest:
        source, target = place(rest[0], config), place(last, config)
        with screen.waiting("Moving and comparing …"):
            moved = move(source, target)
    if last.startswith(POSTGRESQL):
        _make_ready(last, config, chosen.app_role)
    _tell(screen, moved, last)
    return 0


def place(text: str, config: Config) -> Place:
    """The store that an address names; paths are relative to the project file."""
    if text.startswith(POSTGRESQL):
        address = address_of(text, config)
        found: Place = needing_psycopg("toolgrove.store.moving.postgres", where=address.told).PostgresPlace(address)
        return found
    if not text.startswith(SQLITE) or not text.removeprefix(SQLITE).strip():
        raise ValueError("a store is sqlite: with a path, such as sqlite:data/grove.db, or begins with postgresql://")
    file = Path(text.removeprefix(SQLITE).strip()).expanduser()
    return SqlitePlace(config.folder / file, None if config.state is None else config.state / "state.db")


def _make_ready(text: str, config: Config, role: str | None) -> None:
    address = address_of(text, config)
    migrating = needing_psycopg("toolgrove.store.postgres.migrating", where=address.told)
    with migrating.opened(address) as connection:
        if role is not None:
            migrating.grant(connection, address, role)


def _tell(screen: Screen, moved: list[Moved], last: str) -> None:
    form = {"moved": [{"table": one.table, "rows": one.rows, "sha256": one.sha256} for one in moved]}
    if not moved:
        screen.answer(form, line("The database is ready for this version."))
        return
    shown = table("TABLE", "ROWS", "THE SAME ON BOTH SIDES (SHA-256)")
    for one in moved:
        shown.add_row(line(one.table), line(f"{one.rows:,}"), line(one.sha256[:_SHOWN]))
    kind = "the new address" if last.startswith(POSTGRESQL) else last
    screen.answer(form, shown, line(f"Now write {kind} as workspace.store in the project file."), fold=False)
