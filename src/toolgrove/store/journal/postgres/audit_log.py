"""The audit records of a store in PostgreSQL: finding some, and proving that all are as they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from toolgrove.store.audit import AuditFile, AuditPage, AuditQuery, Notary, Place, Proof, PublicKeys, Served, TreeProof
from toolgrove.store.journal.postgres.asking import ask_replicas
from toolgrove.store.journal.postgres.tables import PostgresTables, kept_as
from toolgrove.store.journal.tables.audit_queries import Terms, page, prove, with_archive
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.replay import replay
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import connect, unavailable
from toolgrove.store.unusable import StoreUnusable

Answer = TypeVar("Answer")
# PostgreSQL's own JSON refuses texts that a record may hold; nothing before these is an object.
_BEFORE = r"""'^{(?:[^{}"]|"(?:[^"\\]|\\.)*")*"""
_CALL, _RUN = (rf"""substring(line from {_BEFORE},"{name}":"((?:[^"\\]|\\.)*)"')""" for name in ("callId", "runId"))
_TERMS = Terms(kind="kind", call=_CALL, run=_RUN, greatest="greatest", like="ILIKE", kept_as=kept_as)
_NAMED = """
SELECT 1 FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = 'journal' AND column_name = 'id'
"""
_ROUNDS = 3
_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def _terms(tables: PostgresTables) -> Terms:
    """A database from before names no change until it is brought up to date."""
    return replace(_TERMS, has_changes=tables.execute(_NAMED).fetchone() is not None)


class PostgresAuditLog:
    """Reads the records, on a connection of its own for each question."""

    def __init__(
        self,
        address: DatabaseAddress,
        seals: Notary | PublicKeys | None = None,
        *,
        copies: Iterable[Path] = (),
        archive: Path | None = None,
    ) -> None:
        self._address = address
        self._seals = seals
        self._copies = tuple(copies)
        self._archive = archive

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records."""
        return await anyio.to_thread.run_sync(self._ask, lambda tables: page(tables, query, _TERMS))

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written, here and in the copies."""
        return await anyio.to_thread.run_sync(self.prove, tuple(anchors))

    def prove(self, anchors: Iterable[Place] = ()) -> Proof:
        """The same, for those who may wait."""
        proof, passed, floor = self._ask(lambda tables: prove(tables, self._seals, anchors, _terms(tables)))
        for path in self._copies:
            copy = AuditFile(path, self._seals).prove([passed], is_sealed=proof.sealed_from is not None)
            proof = proof.with_copy(path.name, copy)
        return proof if self._archive is None else with_archive(proof, self._archive, floor, self._seals)

    async def replay(self, served: Sequence[Served] = ()) -> TreeProof:
        """Whether the journal leads to the stored tree, and that is the one that every replica serves."""
        return await anyio.to_thread.run_sync(self._replay)

    def _replay(self) -> TreeProof:
        for _ in range(_ROUNDS):  # a replica may serve what is on its way into the store
            with unavailable(self._address):
                served, silent = ask_replicas(self._address)
            proof = self._ask(partial(replay, served=served, is_shared=True, kept_as=kept_as))
            if not proof.is_moving:
                break
        return proof.without(silent)

    def sealed_by(self) -> str:
        """The public half of the key that signs the log, as the store says; empty where it says none."""
        head = self._ask(Head.read)
        return "" if head is None else head.audit_key

    def _ask(self, question: Callable[[PostgresTables], Answer]) -> Answer:
        try:
            with unavailable(self._address), closing(connect(self._address)) as connection:
                tables = PostgresTables(connection)
                tables.execute(_ONE_MOMENT)
                return question(tables)
        except Damaged as error:
            raise StoreUnusable(
                where=self._address.told, problem=f"is damaged: {error}", advice="Restore a backup of the database."
            ) from None
