"""The journal in a SQLite file."""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine, Iterable, Sequence
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
    IdempotencyRecord,
    JournalEntry,
    KeyLimits,
    Trouble,
)
from toolgrove.store.journal.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.journal.sqlite.measuring import measure
from toolgrove.store.journal.sqlite.opening import OpenStore, open_store
from toolgrove.store.journal.tables.audit_retention import Days
from toolgrove.store.journal.tables.line import Line
from toolgrove.store.journal.tables.stall import Stall
from toolgrove.store.project import AsKnown
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Clock


class SqliteJournal:
    """Keeps entries in one file; other processes may read it meanwhile."""

    def __init__(
        self,
        path: Path,
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
        self._path = path
        self._notary = notary
        self._log = SqliteAuditLog(
            path, notary, copies=[sink.path for sink in sinks if isinstance(sink, JsonLines)], archive=archive
        )
        self._clock = clock
        self._sinks = sinks
        self._limits = limits or KeyLimits(per_agent=KEYS_ON_DISK)
        self._audit_days = audit_days
        self._archive = archive
        self._record_bytes = record_bytes
        self._change_key = change_key
        self._known = known
        self._opened: OpenStore | None = None

    async def open(self) -> SavedWorkspace:
        """Take the file, and read the workspace that it holds."""
        opened, saved = await anyio.to_thread.run_sync(self._open)
        self._opened = opened
        self._line.open(opened.ledger)
        return saved

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        if self._opened is not None and self._opened.files.lost:
            return "store_gone"
        return self._line.trouble

    @property
    def fault(self) -> OSError | None:
        """Why the last group was refused; None while all is well."""
        return self._line.fault

    def look(self) -> None:
        """Have the writer look whether the store is free and there; one that does not come back is held up."""
        self._line.look()

    async def writable(self) -> None:
        """Return when nobody else holds the store; raises OSError if that is not so within the wait that all share."""
        if self.stall.is_on:
            await self.stall.end()

    def _open(self) -> tuple[OpenStore, SavedWorkspace]:
        return open_store(
            self._path,
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

    async def close(self) -> None:
        """Write what is on its way, and release the file."""
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
        return measure(self._path, self._archive)

    @property
    def unfinished(self) -> Unfinished:
        """Calls that have not ended yet, and calls whose outcome is unknown."""
        return self._require().ledger.unfinished

    def fingerprint(self, text: str) -> str:
        """The stamp of a text; without a key its hash."""
        stamp = self._notary.stamp(text) if self._notary is not None else ""
        return stamp or hashlib.sha256(text.encode()).hexdigest()

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None:
        """The result under a key, unless it has expired; one look into an index, so no thread is asked."""
        opened = self._require()
        return opened.keys.find(opened.reader, agent, key)

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records, up to those of calls that have ended by now."""
        await self._line.catch_up()
        return await self._log.records(query)

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written."""
        await self._line.catch_up()
        return await self._log.verify(anchors)

    async def replay(self, served: Sequence[Served] = ()) -> TreeProof:
        """Whether the journal leads to the stored tree, and that is the one that is served."""
        await self._line.catch_up()
        return await self._log.replay(served)

    def _require(self) -> OpenStore:
        if self._opened is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        return self._opened
