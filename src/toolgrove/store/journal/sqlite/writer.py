"""The writer: one thread that takes whatever has come in meanwhile and commits it as one group."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import anyio

from toolgrove.store.journal.sqlite.ledger import Ledger, Outcome
from toolgrove.store.journal.sqlite.rows import Rows

log = logging.getLogger("toolgrove.store")


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
        """Wait for the outcome to the very end: who is cancelled meanwhile goes when the entry is kept."""
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
    """Feeds a ledger; `written` is called with every group in the writer's thread, before its tickets are answered."""

    def __init__(self, ledger: Ledger, written: Written) -> None:
        self._ledger = ledger
        self._written = written
        self._queue: SimpleQueue[Sequence[Ticket] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="toolgrove-store", daemon=True)
        self._thread.start()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Put tickets in line."""
        self._queue.put(tickets)

    def finish(self) -> None:
        """Write what is in line, then end; blocks until that is done."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            batches = [self._queue.get()]
            with suppress(Empty):
                while batches[-1] is not None:
                    batches.append(self._queue.get_nowait())
            goes_on = batches[-1] is not None
            tickets = [ticket for batch in batches if batch is not None for ticket in batch]
            if tickets:
                self._write(tickets)

    def _write(self, tickets: Sequence[Ticket]) -> None:
        outcomes: Sequence[Outcome]
        try:
            outcomes = self._ledger.write([ticket.rows for ticket in tickets])
        except Exception as error:
            log.exception("the store failed to write a group")
            outcomes = [OSError(f"the store failed: {error}") for _ in tickets]
        self._written(tickets, outcomes)
        answers: dict[asyncio.AbstractEventLoop, list[tuple[Ticket, Outcome]]] = {}
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            answers.setdefault(ticket.loop, []).append((ticket, outcome))
        for loop, answered in answers.items():
            try:
                loop.call_soon_threadsafe(_answer, answered)
            except RuntimeError:
                log.warning("an event loop ended before the store could answer %d calls", len(answered))


def _answer(answered: Sequence[tuple[Ticket, Outcome]]) -> None:
    for ticket, outcome in answered:
        ticket.answer(outcome)
