"""The journal in PostgreSQL."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from toolgrove.store.audit import (
    AuditArchive,
    AuditPage,
    AuditQuery,
    AuditRing,
    AuditSink,
    JsonLines,
    Notary,
    Place,
    Proof,
    Served,
    TreeProof,
    Unfinished,
)
from toolgrove.store.journal.extent import Extent
from toolgrove.store.journal.journal import (
    KEYS_ON_DISK,
    RECORD_BYTES,
    Diverged,
    IdempotencyRecord,
    JournalEntry,
    KeyLimits,
    Outdated,
    Stalled,
    Trouble,
)
from toolgrove.store.journal.news import News
from toolgrove.store.journal.postgres.asking import answer
from toolgrove.store.journal.postgres.audit_log import PostgresAuditLog
from toolgrove.store.journal.postgres.doorbell import Doorbell
from toolgrove.store.journal.postgres.following import missing, news_since, read_all
from toolgrove.store.journal.postgres.measuring import measure
from toolgrove.store.journal.postgres.opening import OpenDatabase, open_database
from toolgrove.store.journal.postgres.reading import Answer
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.audit_retention import Days
from toolgrove.store.journal.tables.line import Line
from toolgrove.store.journal.tables.stall import Stall
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.project import AsKnown
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Clock

_ANSWER = 3.0
"""Seconds after which a database that does not tell what a key stands for counts as held up."""


class PostgresJournal:
    """Keeps entries in a database that other processes may write as well."""

    def __init__(
        self,
        address: DatabaseAddress,
        clock: Clock,
        *,
        sinks: Sequence[AuditSink] = (),
        limits: KeyLimits | None = None,
        audit_days: Days | None = None,
        archive: Path | None = None,
        record_bytes: int = RECORD_BYTES,
        notary: Notary | None = None,
        change_key: bool = False,
        known: AsKnown = lambda: None,
    ) -> None:
        """`change_key` lets a log that another key sealed go on under this one; `known` asks which project this machine
        knows already."""
        self.audit = AuditRing()
        self.stall = Stall(clock)
        self._line = Line(self.stall, self.audit)
        self._address = address
        self._notary = notary
        self._log = PostgresAuditLog(
            address, notary, copies=[sink.path for sink in sinks if isinstance(sink, JsonLines)], archive=archive
        )
        self._clock = clock
        self._sinks = sinks
        self._limits = limits or KeyLimits(per_agent=KEYS_ON_DISK)
        self._audit_days = audit_days
        self._archive = archive
        self._record_bytes = record_bytes
        self._change_key = change_key
        self._known = known
        self._opened: OpenDatabase | None = None

    async def open(self) -> SavedWorkspace:
        """Connect, and read the workspace that the tables hold."""
        opened, saved = await anyio.to_thread.run_sync(self._open)
        self._opened = opened
        self._line.open(opened.ledger)
        return saved

    def _open(self) -> tuple[OpenDatabase, SavedWorkspace]:
        return open_database(
            self._address,
            self._clock,
            sinks=self._sinks,
            limits=self._limits,
            audit_days=self._audit_days,
            archive=None if self._archive is None else AuditArchive(self._archive, self._notary),
            record_bytes=self._record_bytes,
            notary=self._notary,
            change_key=self._change_key,
            known=self._known,
        )

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        if self._require().ledger.is_outdated:
            return "version_outdated"
        found = self._line.trouble
        return "store_unreachable" if found == "store_locked" else found

    @property
    def fault(self) -> OSError | None:
        """Why the last group was refused; None while all is well."""
        return self._line.fault

    def look(self) -> None:
        """Have the writer look whether the database is there; one that does not come back is held up."""
        self._line.look()

    async def writable(self) -> None:
        """Return when the database can be written; raises OSError if not within the wait that all share, or never."""
        if self._require().ledger.is_outdated:
            raise Outdated
        if self.stall.is_on:
            await self.stall.end()

    async def close(self) -> None:
        """Write what is on its way, and let go."""
        opened = self._opened
        if opened is not None:
            await self._line.close(opened.close)
            self._opened = None

    @property
    def project(self) -> str:
        """The identity of the project, once it is open."""
        return self._require().project

    def append(self, entry: JournalEntry) -> Coroutine[Any, Any, None]:
        """Keep an entry; one that changed anything is durable on return."""
        return self._line.append(entry)

    def extent(self) -> Extent:
        """How much room the store takes by now."""
        return measure(self._address, self._archive)

    @property
    def unfinished(self) -> Unfinished:
        """Calls that have not ended yet, and calls whose outcome is unknown."""
        return self._require().ledger.unfinished

    def fingerprint(self, text: str) -> str:
        """The stamp of a text; without a key its hash."""
        stamp = self._notary.stamp(text) if self._notary is not None else ""
        return stamp or hashlib.sha256(text.encode()).hexdigest()

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None:
        """The result under a key, unless it has expired; raises Stalled where the database stays unreachable."""
        opened = self._require()
        while True:
            await self.stall.end()
            with suppress(Stalled, Diverged), anyio.move_on_after(_ANSWER) as bound:
                return await anyio.to_thread.run_sync(
                    opened.recalling.ask, lambda tables: opened.keys.find(tables, agent, key), abandon_on_cancel=True
                )
            if bound.cancelled_caught:
                opened.recalling.cut()
            self.stall.met()  # the writer's next look ends it, if that one can reach the database

    async def news(self, newest: str) -> News:
        """What was written after a change, by whomever; raises Stalled where the database cannot be asked now, and
        Diverged where it does not have that change."""
        return await self._ask(lambda tables: news_since(tables, newest))

    async def read(self) -> SavedWorkspace:
        """The workspace as it is stored now; raises Stalled where the database cannot be asked."""
        return await self._ask(lambda tables: read_all(tables)[1])

    async def missing(self, changes: Sequence[str]) -> Sequence[str]:
        """Those of some changes that are not stored; raises Stalled where the database cannot be asked."""
        return await self._ask(lambda tables: missing(tables, changes))

    async def _ask(self, question: Callable[[PostgresTables], Answer]) -> Answer:
        reader = self._require().reader
        return await anyio.to_thread.run_sync(reader.ask, question, abandon_on_cancel=True)

    def listen(self, ring: Callable[[], object], asked: Callable[[str], object]) -> Doorbell:
        """Have `ring` called in a thread whenever there may be news, and `asked` when somebody asks what is served."""
        return Doorbell(self._address, self._require().replica, ring, asked)

    async def answer(self, question: str, served: Served) -> None:
        """Tell whoever asked which tree this process serves; its name may be that of what keeps the state."""
        names = [self._require().replica, *([served.name] if served.name else [])]
        await self._ask(lambda tables: answer(tables, self._address, question, names, served))

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records, up to those of calls that have ended by now."""
        await self._line.catch_up()
        return await self._log.records(query)

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written."""
        await self._line.catch_up()
        return await self._log.verify(anchors)

    async def replay(self, served: Sequence[Served] = ()) -> TreeProof:
        """Whether the journal leads to the stored tree, and that is the one that every replica serves."""
        await self._line.catch_up()
        return await self._log.replay()

    def _require(self) -> OpenDatabase:
        if self._opened is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        return self._opened
