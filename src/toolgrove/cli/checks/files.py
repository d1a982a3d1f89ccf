"""Files: those that others could read or change, and the state, which has to be readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.cli.checks.modes import open_to_others, writable_by_others
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.project_identity import known_project
from toolgrove.project_state import ProjectState
from toolgrove.store.backup import project_at
from toolgrove.store.project import OtherProject
from toolgrove.store.state import StateTooNew


def check(path: Path, config: Config) -> Iterator[Finding]:
    """The project file says which programs are started, the state what was approved."""
    if writable_by_others(path):
        yield _finding("warning", path, "others may change it, and with it the programs that are started; chmod 644 it")
    yield from _state(config)
    yield from _project(config)
    log = config.workspace.audit_log
    if log is not None and (who := open_to_others(log)):
        yield _finding("warning", log, f"the audit log can be read by {who}; chmod 600 it")
    folder = config.extensions
    if folder is not None and folder.is_dir() and writable_by_others(folder):
        yield _finding("warning", folder, "others may put code into it; chmod 755 it")


def _state(config: Config) -> Iterator[Finding]:
    if config.workspace.is_database:
        yield from _database(config)
    folder, file = config.state, config.state_file
    if folder is None or file is None:
        return
    if folder.exists() and not folder.is_dir():
        yield _finding("error", folder, "is a file, and pins and approvals need a folder; move it, or name another")
        return
    if not file.exists():
        yield _finding("note", folder, "nothing stored yet; pins and approvals will be saved here")
        return
    try:
        with ProjectState.of(config):
            pass
    except (OSError, StateTooNew) as problem:
        yield _finding("error", file, f"{problem}; put back a copy, or move it away to begin anew")
        return
    if who := open_to_others(file) or open_to_others(folder):
        yield _finding("warning", file, f"pins and approvals can be read by {who}; chmod 700 {folder.name}")
    elif writable_by_others(folder):
        yield _finding("warning", folder, "others may replace pins and approvals; chmod 700 it")
    else:
        yield _finding("ok", file, "pins and approvals are private to you")


def _project(config: Config) -> Iterator[Finding]:
    """Of which project the files here are: a store and a state of two are refused when the project starts."""
    store = config.workspace.store_path
    known, stored = known_project(config), None if store is None else project_at(store)
    if known is not None and stored is not None and known.project != stored.project:
        yield _finding(
            "error", store or config.folder, str(OtherProject(where=store, project=stored.project, known=known))
        )
    elif (found := stored or known) is not None:
        yield Finding(area="files", level="ok", subject=str(found.place), message=f"of project {found.project}")


def _database(config: Config) -> Iterator[Finding]:
    try:
        with ProjectState.of(config):
            yield Finding(area="files", level="ok", subject="workspace.store", message="the database answers")
    except (OSError, GroveError, ValueError) as problem:
        yield Finding(area="files", level="error", subject="workspace.store", message=str(problem))


def _finding(level: Level, path: Path, message: str) -> Finding:
    return Finding(area="files", level=level, subject=str(path), message=message)
