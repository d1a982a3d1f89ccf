"""The audit log: is its key private, does it end where it should, and does anything wait for a person?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import anyio

from toolgrove.cli.audit_log import log_of
from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.cli.checks.modes import open_to_others
from toolgrove.config import Config
from toolgrove.database import database_of
from toolgrove.notary import notary_of
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import BROKEN, AuditFile, AuditLog, AuditQuery, JsonLines, Notary, SealedStore


def check(config: Config) -> Iterator[Finding]:
    """Look at its ends and at what it says about itself; 'toolgrove audit verify' reads all of it."""
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    workspace = config.workspace
    place, copy = workspace.store_path or workspace.audit_log, workspace.audit_log
    if notary is None or not (workspace.is_database or (place is not None and place.exists())):
        return
    if notary.key.exists() and (who := open_to_others(notary.key)):
        yield _finding("warning", notary.key, f"the key of the audit log can be read by {who}; chmod 600 it")
    notary.read()
    database = database_of(config)
    yield from _of_another_key(config, notary, place if database is None else database.told)
    if place is None or not place.exists():
        return
    try:
        log = log_of(config)
        last, broken = _newest(log, AuditQuery()), _newest(log, AuditQuery(tool=BROKEN))
        unknown = _newest(log, AuditQuery(outcome="unknown"))
        copied = 0 if copy is None or copy == place else _newest(AuditFile(copy), AuditQuery())
    except OSError as problem:
        yield _finding("error", place, str(problem))
        return
    noted = notary.noted()
    had = max(copied, noted.number if noted is not None else 0)
    if had > last:
        text = f"ends at audit record {last}, and once had {had}: an older copy was put back, or its end was cut off; "
        yield _finding("error", place, f"{text}put a newer one in its place, or go on with a marked break")
    elif broken:
        text = f"audit record {broken} marks a break: an older copy was put back, or the end was cut off"
        yield _finding("warning", place, f"{text}; see 'toolgrove audit verify'")
    if unknown:
        text = "the outcome of some calls is unknown; see 'toolgrove audit list --outcome unknown'"
        yield _finding("warning", place, text)


def _of_another_key(config: Config, notary: Notary, place: object) -> Iterator[Finding]:
    """Whether the key of this project is the one that sealed the log; else the next start is refused."""
    try:
        log = log_of(config)
        if isinstance(log, SealedStore):
            is_other = log.sealed_by() not in ("", notary.public)
        else:
            file = config.workspace.audit_log
            is_other = file is not None and JsonLines(file, notary).tail(mend=False).is_ours is False
    except (OSError, ValueError):  # told where it is looked at in earnest
        return
    if is_other and notary.has_key:
        yield _finding("error", place, str(notary.another("store", place)))
    elif is_other:
        text = "the key that sealed the audit log is not here; put it back, or name it in workspace.auditKey"
        yield _finding("error", place, text)


def _newest(log: AuditLog, query: AuditQuery) -> int:
    """The number of the last record that a query asks for; 0 if there is none."""
    page = anyio.run(log.records, replace(query, newest=True, limit=1))
    return int(page.records[0]["number"]) if page.records else 0


def _finding(level: Level, path: object, message: str) -> Finding:
    return Finding(area="audit", level=level, subject=str(path), message=message)
