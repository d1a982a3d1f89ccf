"""The journal in a SQLite file."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

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
    Sealed,
    Unfinished,
)
from toolgrove.store.journal.extent import Extent
from toolgrove.store.journal.journal import (
    KEYS_ON_DISK,
    RECORD_BYTES,
    Gone,
    IdempotencyRecord,
    JournalEntry,
    KeyLimits,
    Stalled,
    Trouble,
)
from toolgrove.store.journal.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.journal.sqlite.audit_retention import Days
from toolgrove.store.journal.sqlite.ledger import Outcome
from toolgrove.store.journal.sqlite.measuring import measure
from toolgrove.store.journal.sqlite.opening import OpenStore, open_store
from toolgrove.store.journal.sqlite.rows import Rows
from toolgrove.store.journal.sqlite.stall import Stall
from toolgrove.store.journal.sqlite.writer import Ticket, Writer
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.store")
_BACKLOG = 10_000
_LINGER = 0.05
_STUCK = 0.5
"""Seconds after which a writer that does not come back counts as held up by its disk."""


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
    ) -> None:
        self.audit = AuditRing()
        self.fault: OSError | None = None
        """Why the last group was refused; None while all is well."""
        self.stall = Stall(clock)
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
        self._opened: OpenStore | None = None
        self._writer: Writer | None = None
        self._waiting: list[Ticket] = []
        self._handing_over: asyncio.AbstractEventLoop | None = None
        self._taken = 0
        self._written = 0
        self._curious: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._counting = threading.Lock()
        self._has_told = False

    async def open(self) -> SavedWorkspace:
        """Take the file, and read the workspace that it holds."""
        opened, saved = await anyio.to_thread.run_sync(self._open)
        self._opened = opened
        self._writer = Writer(opened.ledger, self._keep_count, self.stall)
        return saved

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        if self._opened is not None and self._opened.files.lost:
            return "store_gone"
        if self.stall.is_on:
            return "store_locked"
        return None if self.fault is None else "store_unwritable"

    def look(self) -> None:
        """Have the writer look whether the store is free and there; one that does not come back is held up."""
        if self._writer is None:
            return
        if self._writer.busy_for() > _STUCK:
            self.stall.met()
        else:
            self._writer.submit(())

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
        )

    async def close(self) -> None:
        """Write what is on its way, and release the file."""
        writer, opened = self._writer, self._opened
        if writer is None or opened is None:
            return
        self._hand_over()
        self._writer = None
        with anyio.CancelScope(shield=True):
            has_ended = await anyio.to_thread.run_sync(writer.finish)
            self._opened = None
            if has_ended:  # else its disk holds the writer up, and with it the file
                await anyio.to_thread.run_sync(opened.close)

    async def append(self, entry: JournalEntry) -> None:
        """Keep an entry; one that changed anything is durable on return."""
        if self._writer is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        if entry.alone:
            with anyio.CancelScope(shield=True):  # who is cancelled from here on is still in the journal
                rows = await anyio.to_thread.run_sync(Rows.of, entry)
        else:
            rows = Rows.of(entry)
        is_bare = rows.is_bare
        loop = asyncio.get_running_loop()
        if not is_bare:
            if self._handing_over is not loop:
                self._handing_over = loop
                loop.call_soon(self._hand_over)  # whatever is ready to run now joins the same group
        elif not self._waiting or self._waiting[-1].loop is not loop:
            loop.call_later(_LINGER, self._hand_over)  # waking the writer for each would cost more than the call
        ticket = Ticket(rows, loop)
        self._waiting.append(ticket)
        self._taken += 1
        if not is_bare or (self._taken - self._written > _BACKLOG and not self.stall.is_on):
            await ticket.wait()

    def _hand_over(self) -> None:
        self._handing_over = None
        if self._waiting and self._writer is not None:
            self._writer.submit(self._waiting)
            self._waiting = []

    def _keep_count(self, tickets: Sequence[Ticket], outcomes: Sequence[Outcome]) -> None:
        """Runs in the writer's thread."""
        fault: OSError | None = None
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            if isinstance(outcome, Sealed):
                self.audit.write(outcome)
                continue
            fault = outcome
            if isinstance(outcome, Gone):
                self._tell_gone(outcome)
            elif ticket.waiter is None and not isinstance(outcome, Stalled):
                log.error("the store lost the audit record of call %s: %s", ticket.rows.audit.call_id, outcome)
        if fault is not None and not isinstance(fault, Stalled):
            self.fault = fault
        elif fault is None and (not tickets or not all(ticket.rows.is_bare for ticket in tickets)):
            self.fault = None
        with self._counting:
            self._written += len(tickets)
            reached = [one for one in self._curious if one[0] <= self._written or self.stall.is_on]
            self._curious = [one for one in self._curious if one not in reached]
        for _, loop, event in reached:
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(event.set)

    def _tell_gone(self, gone: Gone) -> None:
        if not self._has_told:
            self._has_told = True
            log.critical("%s Nothing can be kept until then; audit records are lost.", gone)

    def extent(self) -> Extent:
        """How much room the store takes by now."""
        return measure(self._path, self._archive)

    @property
    def unfinished(self) -> Unfinished:
        """Calls that have not ended yet, and calls whose outcome is unknown."""
        return self._require().ledger.unfinished

    def fingerprint(self, text: str) -> str:
        """The seal of a text; without a key its hash."""
        seal = self._notary.seal(text) if self._notary is not None else ""
        return seal or hashlib.sha256(text.encode()).hexdigest()

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None:
        """The result under a key, unless it has expired; one look into an index, so no thread is asked."""
        opened = self._require()
        return opened.keys.find(opened.reader, agent, key)

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records, up to those of calls that have ended by now."""
        await self._catch_up()
        return await self._log.records(query)

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the audit records are as they were written."""
        await self._catch_up()
        return await self._log.verify(anchors)

    async def _catch_up(self) -> None:
        """Wait until everything that has been taken so far is written."""
        self._hand_over()
        event = asyncio.Event()
        with self._counting:
            if self._written == self._taken or self.stall.is_on:
                return  # what is held comes later, and who reads waits for nobody
            self._curious.append((self._taken, asyncio.get_running_loop(), event))
        await event.wait()

    def _require(self) -> OpenStore:
        if self._opened is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        return self._opened
