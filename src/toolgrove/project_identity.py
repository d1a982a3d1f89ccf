"""Of which project this machine's files are: what the state folder and the state file say, and keeping it there."""

from __future__ import annotations

from toolgrove.config import Config
from toolgrove.store.project import Known, read_mark, write_mark
from toolgrove.store.state import STATE_FILE, project_of

MARK = "database.project"
"""Says in the state folder of which project the database is."""


def known_project(config: Config) -> Known | None:
    """What is known here; None on a machine that is new to the project."""
    if config.state is None:
        return None
    marked, file = read_mark(config.state / MARK), config.state / STATE_FILE
    kept = project_of(file)
    stated = None if kept is None else Known(kept, file)
    return marked or stated if config.workspace.is_database else stated or marked


def keep_project(config: Config, project: str) -> None:
    """Have the state folder say it, where the project is in a database; a state file says it itself."""
    if config.state is not None and config.workspace.is_database:
        write_mark(config.state / MARK, project)
