"""Which journal a project has, by what its file says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from toolgrove.config import Config
from toolgrove.project_identity import known_project
from toolgrove.store.audit import AuditSink, Notary
from toolgrove.store.journal import MemoryJournal
from toolgrove.store.postgres import DatabaseAddress, needing_psycopg
from toolgrove.types import Clock

if TYPE_CHECKING:
    from toolgrove.store.journal import SqliteJournal
    from toolgrove.store.journal.postgres.journal import PostgresJournal

    AnyJournal = MemoryJournal | SqliteJournal | PostgresJournal
ARCHIVE = "audit-archive.jsonl"


def journal_of(
    config: Config,
    clock: Clock,
    *,
    database: DatabaseAddress | None,
    sinks: Sequence[AuditSink] = (),
    notary: Notary | None = None,
    change_key: bool = False,
) -> AnyJournal:
    """The journal, not opened yet; StoreUnusable where a database is asked for and its driver is missing.

    `change_key` lets an audit log that another key sealed go on under this one.
    """
    settings = config.workspace
    path = settings.store_path
    if path is not None:
        sqlite = import_module("toolgrove.store.journal.sqlite")  # only those who keep a file pay for its import
        kept: SqliteJournal = sqlite.SqliteJournal(
            path,
            clock,
            sinks=sinks,
            audit_days=settings.audit_days,
            archive=settings.archive_path,
            record_bytes=config.record_bytes,
            notary=notary,
            change_key=change_key,
            known=partial(known_project, config),
        )
        return kept
    if database is None:
        return MemoryJournal(clock, sinks=sinks, record_bytes=config.record_bytes, notary=notary, change_key=change_key)
    postgres = needing_psycopg("toolgrove.store.journal.postgres.journal", where=database.told)
    journal: PostgresJournal = postgres.PostgresJournal(
        database,
        clock,
        sinks=sinks,
        audit_days=settings.audit_days,
        archive=archive_of(config),
        record_bytes=config.record_bytes,
        notary=notary,
        change_key=change_key,
        known=partial(known_project, config),
    )
    return journal


def archive_of(config: Config) -> Path | None:
    """Where old audit records go; those of a database to the state folder, unless the project says otherwise."""
    settings = config.workspace
    if settings.is_database and settings.audit_archive is None:
        return None if config.state is None else config.state / ARCHIVE
    return settings.archive_path
