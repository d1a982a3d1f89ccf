"""Room: is there enough on the disk of the store, and how far has the audit log grown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.config import Config
from toolgrove.store.journal import measure


def check(config: Config) -> Iterator[Finding]:
    """What passed a mark of the project, and what to do about it."""
    workspace = config.workspace
    store, marks = workspace.store_path, workspace.marks()
    if store is None or not store.exists():
        return
    try:
        extent = measure(store, workspace.archive_path)
    except OSError as problem:
        yield _finding("error", store, str(problem))
        return
    if marks.disk_passed(extent):
        text = f"its disk has {_megabytes(extent.disk_free or 0)} left, less than workspace.diskMark"
        yield _finding("warning", store, f"{text}; free some space before changes are refused")
    if marks.audit_passed(extent):
        text = f"holds about {extent.audit_records:,} audit records ({_megabytes(extent.store_bytes)} in all)"
        advice = "set workspace.auditDays, or raise the mark"
        yield _finding("warning", store, f"{text}, more than workspace.auditMark; {advice}")


def _megabytes(size: int) -> str:
    return f"{size / 1024**2:,.0f} MB"


def _finding(level: Level, path: Path, message: str) -> Finding:
    return Finding(area="files", level=level, subject=str(path), message=message)
