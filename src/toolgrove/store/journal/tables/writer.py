"""The writer: one thread that takes whatever has come in meanwhile and commits it as one group."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

import anyio

from toolgrove.store.journal.journal import OUTRUN, Stalled
from toolgrove.store.journal.tables.entries import Outcome
from toolgrove.store.journal.tables.rows import Rows
from toolgrove.store.journal.tables.stall import Stall

log = logging.getLogger("toolgrove.store")
HELD = 10_000
"""How many records that nobody waits for are held while somebody else holds the store; the oldest go first."""
_AGAIN = 0.25
_COME_BACK = 0.5
"""Seconds that others are kept waiting, at most, for a change that is overdue to come back."""
_FAREWELL = 1.0
_MEND = 5.0


class Undecided(Exception):
    """Nobody knows yet whether a group was kept: `decide` finds out, raises Stalled if it was not, or this again."""

    def __init__(self, decide: Callable[[], Sequence[Outcome]]) -> None:
        super().__init__()
        self.decide = decide


class Ledger(Protocol):
    """What the writer's thread works with."""

    def write(self, group: Sequence[Rows]) -> Sequence[Outcome]:
        """Keep a group in one transaction; raises Stalled where it cannot now, Undecided where it may have."""
        ...

    @property
    def keeps_others_waiting(self) -> bool:
        """Whether nobody else can write until a change that is overdue has come back, or `release` is called."""
        ...

    def release(self) -> None:
        """Let others write again."""
        ...

    def look(self, *, thoroughly: bool) -> None:
        """Find out whether it could be written, thoroughly by writing; raises OSError, if it is held Stalled."""
        ...


@dataclass(slots=True)
class Ticket:
    """Rows on their way, who waits for them, and what became of them."""

    rows: Rows
    loop: asyncio.AbstractEventLoop
    waiter: asyncio.Future[None] | None = None
    outcome: Outcome | None = None

    def answer(self, outcome: Outcome) -> None:
        """Tell whoever waits."""
        self.outcome = outcome
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for the outcome even when cancelled: such a caller leaves once the entry is kept."""
        self.waiter = self.loop.create_future()
        try:
            await self.waiter
        except asyncio.CancelledError as cancelled:
            with anyio.CancelScope(shield=True):
                while self.outcome is None:
                    self.waiter = self.loop.create_future()
                    with suppress(asyncio.CancelledError):
                        await self.waiter
            task = asyncio.current_task()
            if not isinstance(self.outcome, OSError) or task is None:
                raise
            # The refusal comes first; the cancellation takes effect at the caller's next wait.
            task.uncancel()
            task.cancel(*cancelled.args)
        if isinstance(self.outcome, OSError):
            raise self.outcome


Written = Callable[[Sequence[Ticket], Sequence[Outcome]], None]


class Writer:
    """Feeds a ledger; `written` is called with every group in the writer's thread, before its tickets are answered.

    While somebody else holds the store, those who wait are told at once, and other records are held until it is free.
    Only a group that may have been kept waits until that is known.
    """

    def __init__(self, ledger: Ledger, written: Written, stall: Stall) -> None:
        self._ledger = ledger
        self._written = written
        self._stall = stall
        self._held: list[Ticket] = []
        self._doubted: tuple[Sequence[Ticket], Undecided] | None = None
        self._begun: float | None = None
        self._refused_at: float | None = None
        self._queue: SimpleQueue[Sequence[Ticket] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="toolgrove-store", daemon=True)
        self._thread.start()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Put tickets in line; none at all have it look whether the store is free."""
        self._queue.put(tickets)

    def busy_for(self) -> float:
        """The seconds for which it has been at what it does now."""
        begun = self._begun
        return 0.0 if begun is None else time.monotonic() - begun

    def finish(self) -> bool:
        """Write what is in line, then end; blocks until that is done. False if the disk keeps it from ending."""
        self._queue.put(None)
        self._thread.join(_FAREWELL if self._stall.is_on else None)
        return not self._thread.is_alive()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            batches: list[Sequence[Ticket] | None] = []
            with suppress(Empty):
                batches.append(self._next())
                while batches[-1] is not None:
                    batches.append(self._queue.get_nowait())
            goes_on = not batches or batches[-1] is not None
            self._begun = time.monotonic()
            self._turn([ticket for batch in batches if batch is not None for ticket in batch])
            self._begun = None
        if self._doubted is not None:
            self._hold(self._doubted[0])
        if self._held:
            log.error("audit records lost, since the store took nothing for too long: %d", len(self._held))

    def _next(self) -> Sequence[Ticket] | None:
        """What comes next; raises Empty where it is time to look again whether the store is free."""
        if self._ledger.keeps_others_waiting:
            try:
                return self._queue.get(timeout=_COME_BACK)
            except Empty:
                self._ledger.release()
        return self._queue.get(timeout=_AGAIN if self._stall.is_on else None)

    def _turn(self, came: Sequence[Ticket]) -> None:
        """Write what came and what was held; with neither, look whether the store is free."""
        if self._doubted is not None and not self._has_decided(*self._doubted):
            self._hold([*self._held, *came])
            return
        tickets = [*self._held, *came]
        try:
            if tickets:
                self._write(tickets, partial(self._ledger.write, [ticket.rows for ticket in tickets]))
            else:
                self._look()
        except Stalled:
            self._hold(tickets)
        except Undecided as doubt:
            self._doubted, self._held = (tickets, doubt), []
            self._stall.met()
        except OSError as problem:  # found while looking: whoever writes next hears of it
            log.debug("the store cannot be written: %s", problem)
        else:
            self._held = []
            self._stall.over()

    def _has_decided(self, tickets: Sequence[Ticket], doubt: Undecided) -> bool:
        """Answer those in doubt, if it is known by now what became of them."""
        try:
            self._write(tickets, doubt.decide)
        except Undecided:
            return False
        except Stalled:
            self._hold([*tickets, *self._held])
        self._doubted = None
        return True

    def _look(self) -> None:
        """See whether the store is free; after a refusal, now and then, whether it can be written again."""
        is_time = self._refused_at is not None and time.monotonic() - self._refused_at > _MEND
        self._ledger.look(thoroughly=is_time)
        if is_time:
            self._refused_at = None
            self._written((), ())

    def _hold(self, tickets: Sequence[Ticket]) -> None:
        told = [ticket for ticket in tickets if ticket.waiter is not None or not ticket.rows.is_bare]
        self._held = [ticket for ticket in tickets if ticket.waiter is None and ticket.rows.is_bare]
        if len(self._held) > HELD:
            log.error("audit records lost, since the store took nothing for too long: %d", len(self._held) - HELD)
            self._written(self._held[:-HELD], [Stalled() for _ in self._held[:-HELD]])
            self._held = self._held[-HELD:]
        self._stall.met()
        self._written(told, [Stalled() for _ in told])
        self._answer(told, [Stalled() for _ in told])

    def _write(self, tickets: Sequence[Ticket], keep: Callable[[], Sequence[Outcome]]) -> None:
        outcomes: Sequence[Outcome]
        try:
            outcomes = keep()
        except (Stalled, Undecided):
            raise
        except Exception as error:
            log.exception("the store failed to write a group")
            outcomes = [OSError(f"the store failed: {error}") for _ in tickets]
        if any(isinstance(one, OSError) and not isinstance(one, OUTRUN) for one in outcomes):
            self._refused_at = time.monotonic()
        elif not all(ticket.rows.is_bare for ticket in tickets):  # a bare record may fit where a change does not
            self._refused_at = None
        self._written(tickets, outcomes)
        self._answer(tickets, outcomes)

    def _answer(self, tickets: Sequence[Ticket], outcomes: Sequence[Outcome]) -> None:
        answers: dict[asyncio.AbstractEventLoop, list[tuple[Ticket, Outcome]]] = {}
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            answers.setdefault(ticket.loop, []).append((ticket, outcome))
        for loop, answered in answers.items():
            try:
                loop.call_soon_threadsafe(_tell, answered)
            except RuntimeError:
                log.warning("an event loop ended before the store could answer %d calls", len(answered))


def _tell(answered: Sequence[tuple[Ticket, Outcome]]) -> None:
    for ticket, outcome in answered:
        ticket.answer(outcome)
