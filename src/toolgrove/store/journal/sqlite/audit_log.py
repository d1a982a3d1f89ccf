"""The audit records of a store: finding some, and proving that all are as they were written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from toolgrove.store.audit import AuditFile, AuditPage, AuditQuery, Notary, Place, Proof, PublicKeys, Served, TreeProof
from toolgrove.store.journal.sqlite.diagnosis import unusable
from toolgrove.store.journal.sqlite.owner import is_owned
from toolgrove.store.journal.sqlite.schema import KIND, connect_reader
from toolgrove.store.journal.tables.audit_queries import Terms, page, prove, with_archive
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.replay import replay

_OTHER = "in another process, which has the store open"
Answer = TypeVar("Answer")
_CALL, _RUN = (f"json_extract(line, '$.{name}')" for name in ("callId", "runId"))


class SqliteAuditLog:
    """Reads the records of a store, also of one that another process writes."""

    def __init__(
        self,
        path: Path,
        seals: Notary | PublicKeys | None = None,
        *,
        copies: Iterable[Path] = (),
        archive: Path | None = None,
    ) -> None:
        self._path = path
        self._seals = seals
        self._copies = tuple(copies)
        self._archive = archive

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records."""
        return await anyio.to_thread.run_sync(self._ask, lambda connection: page(connection, query, _terms(connection)))

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written, here and in the copies."""
        return await anyio.to_thread.run_sync(self.prove, tuple(anchors))

    def prove(self, anchors: Iterable[Place] = ()) -> Proof:
        """The same, for those who may wait."""
        proof, passed, floor = self._ask(lambda connection: _prove(connection, self._seals, anchors))
        for path in self._copies:
            copy = AuditFile(path, self._seals).prove([passed], is_sealed=proof.sealed_from is not None)
            proof = proof.with_copy(path.name, copy)
        return proof if self._archive is None else with_archive(proof, self._archive, floor, self._seals)

    async def replay(self, served: Sequence[Served] = ()) -> TreeProof:
        """Whether the journal leads to the stored tree, and that is the one that is served."""
        return await anyio.to_thread.run_sync(self._replay, served)

    def _replay(self, served: Sequence[Served]) -> TreeProof:
        proof = self._ask(partial(_replay, served=served))
        return proof if served or not is_owned(self._path) else proof.without([_OTHER])

    def sealed_by(self) -> str:
        """The public half of the key that signs the log, as the store says; empty where it says none."""
        head = self._ask(Head.read)
        return "" if head is None else head.audit_key

    def _ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            with closing(connect_reader(self._path)) as connection:
                return question(connection)
        except (sqlite3.Error, Damaged) as error:
            raise unusable(self._path, error) from None


def _prove(
    connection: sqlite3.Connection, seals: Notary | PublicKeys | None, anchors: Iterable[Place]
) -> tuple[Proof, Place, Place]:
    connection.execute("BEGIN")
    return prove(connection, seals, anchors, _terms(connection))


def _replay(connection: sqlite3.Connection, *, served: Sequence[Served]) -> TreeProof:
    connection.execute("BEGIN")
    return replay(connection, served)


def _terms(connection: sqlite3.Connection) -> Terms:
    """A store from before has no bodies, and names no change, until it is opened again."""
    has_bodies = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'audit_body'").fetchone() is not None
    has_changes = (
        connection.execute("SELECT 1 FROM pragma_table_info('journal') WHERE name = 'id'").fetchone() is not None
    )
    return Terms(
        has_changes=has_changes,
        kind=KIND,
        call=_CALL,
        run=_RUN,
        greatest="max",
        like="LIKE",
        has_bodies=has_bodies,
        has_spans=True,
    )
