"""The audit log of a project, read beside the process that may write it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from toolgrove.config import Config
from toolgrove.database import database_of
from toolgrove.journals import archive_of
from toolgrove.notary import notary_of
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import AuditFile, AuditLog, Breach, Notary, Place, Proof
from toolgrove.store.journal import SqliteAuditLog
from toolgrove.store.postgres import needing_psycopg


class CopyOfLostStore(AuditFile):
    """The copy of a store that is gone: it tells what there was, and never passes for the whole."""

    def __init__(self, path: Path, notary: Notary, *, store: Path) -> None:
        super().__init__(path, notary)
        self._store = store

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """What the copy proves; that the store is missing is a breach, whatever that is."""
        proof = await super().verify(anchors)
        lost = Breach(
            number=0, problem=f"the store {self._store.name} is gone; its copy has records up to {proof.last}"
        )
        return proof if proof.breach is not None else replace(proof, breach=lost)


def log_of(config: Config, anchors: Iterable[Place] = ()) -> AuditLog:
    """The records that outlive a process: the store's, or those in a file; anchors tell that there were some."""
    store, file = config.workspace.store_path, config.workspace.audit_log
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is None:
        raise ValueError(
            "this project's audit records end with its process; keep them with workspace.store: sqlite:PATH, "
            "or name a file in workspace.auditLog"
        )
    notary.read()
    database = database_of(config)
    if database is not None:
        postgres = needing_psycopg("toolgrove.store.journal.postgres.audit_log", where=database.told)
        kept: AuditLog = postgres.PostgresAuditLog(
            database, notary, copies=[] if file is None else [file], archive=archive_of(config)
        )
        return kept
    noted = max((place for place in (notary.noted(), *anchors) if place is not None), default=None)
    if store is not None and store.exists():
        copies = [] if file is None else [file]
        return SqliteAuditLog(store, notary, copies=copies, archive=config.workspace.archive_path)
    if file is not None and store is None and noted is not None:
        return AuditFile(file, notary)
    if file is not None and file.exists():
        return AuditFile(file, notary) if store is None else CopyOfLostStore(file, notary, store=store)
    if noted is not None:
        raise ValueError(f"{store} is gone: it held audit records up to {noted.number}; put a backup in its place")
    raise ValueError(f"{store or file} is not there yet: nothing has been called since the project file names it")
