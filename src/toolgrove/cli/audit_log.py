"""The audit log of a project, read beside the process that may write it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from toolgrove.cli.options import file
from toolgrove.cli.project import load
from toolgrove.config import Config
from toolgrove.database import database_of
from toolgrove.journals import archive_of, journal_of
from toolgrove.notary import notary_of
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import (
    NO_TREE,
    AuditFile,
    AuditLog,
    Breach,
    JsonLines,
    Notary,
    Place,
    Proof,
    PublicKeys,
    ReplayedStore,
)
from toolgrove.store.journal import SqliteAuditLog
from toolgrove.store.postgres import needing_psycopg
from toolgrove.types import SystemClock
from toolgrove.web.schemas import Verification


class CopyOfLostStore(AuditFile):
    """The copy of a store that is gone: it tells what there was, and never passes for the whole."""

    def __init__(self, path: Path, seals: Notary | PublicKeys, *, store: Path) -> None:
        super().__init__(path, seals)
        self._store = store

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """What the copy proves; that the store is missing is a breach, whatever that is."""
        proof = await super().verify(anchors)
        lost = Breach(
            number=0, problem=f"the store {self._store.name} is gone; its copy has records up to {proof.last}"
        )
        return proof if proof.breach is not None else replace(proof, breach=lost)


def log_of(config: Config, anchors: Iterable[Place] = (), keys: PublicKeys | None = None) -> AuditLog:
    """The records that outlive a process: the store's, or those in a file; anchors tell that there were some.

    With `keys`, they are checked with these alone.
    """
    store, file = config.workspace.store_path, config.workspace.audit_log
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is None:
        raise ValueError(
            "this project's audit records end with its process; keep them with workspace.store: sqlite:PATH, "
            "or name a file in workspace.auditLog"
        )
    notary.read()
    seals = keys or notary
    database = database_of(config)
    if database is not None:
        postgres = needing_psycopg("toolgrove.store.journal.postgres.audit_log", where=database.told)
        kept: AuditLog = postgres.PostgresAuditLog(
            database, seals, copies=[] if file is None else [file], archive=archive_of(config)
        )
        return kept
    noted = max((place for place in (notary.noted(), *anchors) if place is not None), default=None)
    if store is not None and store.exists():
        copies = [] if file is None else [file]
        return SqliteAuditLog(store, seals, copies=copies, archive=config.workspace.archive_path)
    if file is not None and store is None and noted is not None:
        return AuditFile(file, seals)
    if file is not None and file.exists():
        return AuditFile(file, seals) if store is None else CopyOfLostStore(file, seals, store=store)
    if noted is not None:
        raise ValueError(f"{store} is gone: it held audit records up to {noted.number}; put a backup in its place")
    raise ValueError(f"{store or file} is not there yet: nothing has been called since the project file names it")


async def verified(log: AuditLog, anchors: Sequence[Place], *, deep: bool) -> Proof:
    """What is known of a log that nobody here writes; `deep`, of the tree of its store as well."""
    proof = await log.verify(anchors)
    if not deep:
        return proof
    return replace(proof, tree=await log.replay() if isinstance(log, ReplayedStore) else NO_TREE)


def proved(chosen: argparse.Namespace, anchors: Sequence[str], keys: Sequence[str]) -> Any:
    """What is known of a copied log, which needs no project; or of the project's, with public keys alone."""
    places, public = [Place.read(one) for one in anchors], PublicKeys(keys) if keys else None
    if chosen.log is None:
        proof = anyio.run(partial(verified, log_of(load(chosen), places, public), places, deep=chosen.deep))
    elif chosen.deep:
        raise ValueError("--deep looks at the store of a project; leave out the name of the log")
    elif not chosen.log.exists():
        raise ValueError(f"{chosen.log} is not there")
    else:
        proof = AuditFile(chosen.log, public or _own_key(chosen)).prove(places, is_sealed=False)
    return Verification.of(proof).to_json()


def _own_key(chosen: argparse.Namespace) -> Notary | None:
    """The key of the project in which somebody asks, if there is one."""
    if not file(chosen).exists():
        return None
    config = load(chosen)
    notary = notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is not None:
        notary.read()
    return notary


async def change_key(config: Config) -> None:
    """Let the audit log go on under the key that the project has now; the log says so."""
    file, notary = config.workspace.audit_log, notary_of(config, Secrets(config.secrets, folder=config.folder))
    if notary is None:
        raise ValueError("this project's audit records end with its process, so no key seals them")
    sinks = [] if file is None else [JsonLines(file, notary)]
    database = database_of(config)
    journal = journal_of(config, SystemClock(), database=database, sinks=sinks, notary=notary, change_key=True)
    await journal.open()
    await journal.close()
