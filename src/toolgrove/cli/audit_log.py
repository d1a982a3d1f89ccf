"""The audit log of a project, read beside the process that may write it."""

from __future__ import annotations

from toolgrove.config import Config
from toolgrove.notary import notary_of
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import AuditFile, AuditLog
from toolgrove.store.journal import SqliteAuditLog


def log_of(config: Config) -> AuditLog:
    """The records that outlive a process: the store's, or those in a file."""
    store, file = config.workspace.store_path, config.workspace.audit_log
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is None:
        raise ValueError(
            "this project's audit records end with its process; keep them with workspace.store: sqlite:PATH, "
            "or name a file in workspace.auditLog"
        )
    notary.read()
    noted = notary.noted()
    if store is not None and store.exists():
        copies = [] if file is None else [file]
        return SqliteAuditLog(store, notary, copies=copies, archive=config.workspace.archive_path)
    if file is not None and (file.exists() or noted is not None):
        return AuditFile(file, notary)
    if noted is not None:
        raise ValueError(f"{store} is gone: it held audit records up to {noted.number}; put a backup in its place")
    raise ValueError(f"{store or file} is not there yet: nothing has been called since the project file names it")
