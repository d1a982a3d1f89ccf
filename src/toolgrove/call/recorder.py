"""Records what happens outside of calls: what people decide, and whom the edge refuses."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread

from toolgrove.call.ids import Ids
from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import AuditRecord, Kind, Outcome
from toolgrove.store.journal import Journal, JournalEntry
from toolgrove.store.state import Deeds
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.call")
LOOK = 1.0
"""How many seconds pass between two looks for what other processes did."""


class Recorder:
    """Writes records of its own, and those of the deeds that wait in the state."""

    def __init__(
        self,
        journal: Journal,
        deeds: Deeds,
        clock: Clock,
        ids: Ids,
        *,
        scrub: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._journal = journal
        self._deeds = deeds
        self._clock = clock
        self._ids = ids
        self._scrub = scrub
        self._turn = anyio.Lock()

    async def record(
        self,
        kind: Kind,
        operation: str,
        *,
        by: str | None = None,
        agent: str = "",
        outcome: Outcome = "success",
        targets: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Leave one record; if the log cannot take it, work goes on all the same."""
        facts = {"by": by, "targets": tuple(targets), "details": details, "error": error}
        try:
            await self._journal.append(
                JournalEntry(self._made(self._clock.wall(), kind, operation, agent, outcome, **facts))
            )
        except OSError:
            log.exception("the journal refused the record of %s", operation)

    async def collect(self) -> None:
        """Record the deeds that wait; where that cannot be done now, they wait on."""
        with suppress(OSError):
            await self._collect()

    async def _collect(self) -> None:
        """Each deed stays in the state until its record is on the disk."""
        async with self._turn:
            while waiting := await anyio.to_thread.run_sync(self._deeds.waiting, abandon_on_cancel=True):
                for _, deed in waiting:
                    facts = {
                        "by": deed.by,
                        "targets": deed.targets,
                        "details": deed.details,
                        "chain": deed.chain,
                        "parent_call_id": deed.parent_call_id,
                        "run_id": deed.run_id,
                    }
                    record = self._made(deed.at, deed.kind, deed.operation, deed.agent, "success", **facts)
                    await self._journal.append(JournalEntry(record, durable=True))
                await anyio.to_thread.run_sync(self._deeds.recorded, waiting[-1][0])

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Collect now, once a second, and at the end."""
        await self.collect()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.collect()

    async def _follow(self) -> None:
        told = False
        while True:
            await anyio.sleep(LOOK)
            try:
                await self._collect()
                told = False
            except OSError as problem:
                if not told:
                    log.error("What people decide cannot be recorded now, and waits: %s", problem)
                told = True

    def _made(self, at: float, kind: Kind, operation: str, agent: str, outcome: Outcome, **facts: Any) -> AuditRecord:
        number = self._ids.call()
        told = {name: self._scrub(value) if name in ("details", "error") else value for name, value in facts.items()}
        return AuditRecord(
            timestamp=to_milliseconds(at),
            call_id=number,
            agent=agent,
            session="",
            operation=operation,
            outcome=outcome,
            kind=kind,
            **{**told, "run_id": told.get("run_id") or number},
        )
