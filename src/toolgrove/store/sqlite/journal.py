"""The journal in a SQLite file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from toolgrove.store.audit import AuditRing, AuditSink, Breach, Sealed
from toolgrove.store.audit_log import AuditPage, AuditQuery
from toolgrove.store.journal import Entry, IdempotencyRecord, KeyLimits
from toolgrove.store.sqlite.audit_log import SqliteAuditLog
from toolgrove.store.sqlite.ledger import Outcome
from toolgrove.store.sqlite.opening import Opened, open_store
from toolgrove.store.sqlite.rows import Rows
from toolgrove.store.sqlite.writer import Ticket, Writer
from toolgrove.tree.saved import Saved
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.store")
_BACKLOG = 10_000
_LINGER = 0.05


class SqliteJournal:
    """Keeps entries in one file; other processes may read it meanwhile."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        sinks: Sequence[AuditSink] = (),
        limits: KeyLimits | None = None,
        audit_days: int | None = None,
    ) -> None:
        self.audit = AuditRing()
        self.fault: OSError | None = None
        """Why the last group was refused; None while all is well."""
        self._path = path
        self._log = SqliteAuditLog(path)
        self._clock = clock
        self._sinks = sinks
        self._limits = limits or KeyLimits()
        self._audit_days = audit_days
        self._opened: Opened | None = None
        self._writer: Writer | None = None
        self._waiting: list[Ticket] = []
        self._handing_over: asyncio.AbstractEventLoop | None = None
        self._taken = 0
        self._written = 0
        self._curious: list[tuple[int, anyio.Event]] = []

    async def open(self) -> Saved:
        """Take the file, and read the workspace that it holds."""
        opened, saved = await anyio.to_thread.run_sync(self._open)
        self._opened = opened
        self._writer = Writer(opened.ledger, self._told)
        return saved

    def _open(self) -> tuple[Opened, Saved]:
        return open_store(self._path, self._clock, sinks=self._sinks, limits=self._limits, audit_days=self._audit_days)

    async def close(self) -> None:
        """Write what is on its way, and release the file."""
        writer, opened = self._writer, self._opened
        if writer is None or opened is None:
            return
        self._hand_over()
        self._writer = None
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(writer.finish)
            self._opened = None
            await anyio.to_thread.run_sync(opened.close)

    async def append(self, entry: Entry) -> None:
        """Keep an entry; one that changed anything is durable on return."""
        if self._writer is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        rows = Rows.of(entry)
        is_bare = rows.is_bare
        loop = asyncio.get_running_loop()
        if not is_bare:
            if self._handing_over is not loop:
                self._handing_over = loop
                loop.call_soon(self._hand_over)  # whoever is ready to run now comes into the same group
        elif not self._waiting or self._waiting[-1].loop is not loop:
            loop.call_later(_LINGER, self._hand_over)  # to wake the writer for each would cost more than the call
        ticket = Ticket(rows, loop)
        self._waiting.append(ticket)
        self._taken += 1
        if not is_bare or self._taken - self._written > _BACKLOG:
            await ticket.wait()

    def _hand_over(self) -> None:
        self._handing_over = None
        if self._waiting and self._writer is not None:
            self._writer.submit(self._waiting)
            self._waiting = []

    def _told(self, tickets: Sequence[Ticket], outcomes: Sequence[Outcome]) -> None:
        self._written += len(tickets)
        self.fault = None
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.answer(outcome)
            if isinstance(outcome, Sealed):
                self.audit.write(outcome)
                continue
            self.fault = outcome
            if ticket.waiter is None:
                log.error("the store lost the audit record of call %s: %s", ticket.rows.audit.call_id, outcome)
        for number, event in self._curious:
            if number <= self._written:
                event.set()
        self._curious = [one for one in self._curious if one[0] > self._written]

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None:
        """The result under a key, unless it has expired; one look into an index, so no thread is asked."""
        opened = self._require()
        return opened.keys.find(opened.reader, agent, key)

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the audit records, up to those of calls that have ended by now."""
        await self._catch_up()
        return await self._log.records(query)

    async def verify(self) -> Breach | None:
        """Whether the audit records are as they were written."""
        await self._catch_up()
        return await self._log.verify()

    async def _catch_up(self) -> None:
        if self._written < self._taken:
            self._hand_over()
            event = anyio.Event()
            self._curious.append((self._taken, event))
            await event.wait()

    def _require(self) -> Opened:
        if self._opened is None:
            raise OSError("the store is not open: use 'async with Grove(...)'")
        return self._opened
