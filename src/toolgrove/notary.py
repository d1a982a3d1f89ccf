"""Where the key of a project's audit log is, and the mark that says where the log stood last."""

from __future__ import annotations

from toolgrove.config import Config
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import Notary

KEY = "audit.key"
DATABASE = "database"


def notary_of(config: Config, secrets: Secrets) -> Notary | None:
    """The notary of the store or the log file, in the state folder; beside the file where a project has none."""
    workspace = config.workspace
    log = workspace.store_path or workspace.audit_log
    if workspace.is_database and config.state is not None:
        log = config.state / DATABASE
    if log is None:
        return None
    reference = workspace.audit_key
    secret = None if reference is None else lambda: secrets.fill(reference, field="workspace.auditKey", user="audit")
    if config.state is None:
        return Notary(key=log.with_name(f"{log.name}-key"), mark=log.with_name(f"{log.name}-head"), secret=secret)
    return Notary(key=config.state / KEY, mark=config.state / f"{log.name}.head", secret=secret)
