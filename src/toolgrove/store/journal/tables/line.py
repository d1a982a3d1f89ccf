"""The line of entries before the writer: each takes its place at once, and those that change something wait there."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio
import anyio.to_thread

from toolgrove.store.audit import AuditRing, Sealed
from toolgrove.store.journal.journal import OUTRUN, Gone, JournalEntry, Stalled, Trouble
from toolgrove.store.journal.tables.entries import Outcome
from toolgrove.store.journal.tables.rows import Rows
from toolgrove.store.journal.tables.stall import Stall
from toolgrove.store.journal.tables.writer import Ledger, Ticket, Writer

log = logging.getLogger("toolgrove.store")
_BACKLOG = 10_000
_LINGER = 0.05
_STUCK = 0.5
"""Seconds after which a writer that does not come back counts as held up by its disk."""


class Line:
    """Feeds a writer, and knows how far it has come."""

    def __init__(self, stall: Stall, ring: AuditRing) -> None:
        self.fault: OSError | None = None
        """Why the last group was refused; None while all is well."""
        self._stall = stall
        self._ring = ring
        self._writer: Writer | None = None
        self._waiting: list[Ticket] = []
        self._handing_over: asyncio.AbstractEventLoop | None = None
        self._taken = 0
        self._written = 0
        self._curious: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._counting = threading.Lock()
        self._has_told = False

    def open(self, ledger: Ledger) -> None:
        """Begin to write."""
        self._writer = Writer(ledger, self._keep_count, self._stall)

    async def close(self, release: Callable[[], None]) -> None:
        """Write what is on its way, and then release the store, unless its disk holds the writer up."""
        writer = self._writer
        if writer is None:
            return
        self._hand_over()
        self._writer = None
        with anyio.CancelScope(shield=True):
            if await anyio.to_thread.run_sync(writer.finish):
                await anyio.to_thread.run_sync(release)

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        if self._stall.is_on:
            return "store_locked"
        return None if self.fault is None else "store_unwritable"

    def look(self) -> None:
        """Have the writer look whether the store is free and there; one that does not come back is held up."""
        if self._writer is None:
            return
        if self._writer.busy_for() > _STUCK:
            self._stall.met()
        else:
            self._writer.submit(())

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
        if not is_bare or (self._taken - self._written > _BACKLOG and not self._stall.is_on):
            await ticket.wait()

    async def catch_up(self) -> None:
        """Wait until everything that has been taken so far is written."""
        self._hand_over()
        event = asyncio.Event()
        with self._counting:
            if self._written == self._taken or self._stall.is_on:
                return  # what is held comes later, and who reads waits for nobody
            self._curious.append((self._taken, asyncio.get_running_loop(), event))
        await event.wait()

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
                self._ring.write(outcome)
                continue
            if isinstance(outcome, OUTRUN):
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
            reached = [one for one in self._curious if one[0] <= self._written or self._stall.is_on]
            self._curious = [one for one in self._curious if one not in reached]
        for _, loop, event in reached:
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(event.set)

    def _tell_gone(self, gone: Gone) -> None:
        if not self._has_told:
            self._has_told = True
            log.critical("%s Nothing can be kept until then; audit records are lost.", gone)
