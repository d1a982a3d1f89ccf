"""Outermost step: turns failures into answers and leaves exactly one record of every call."""

from __future__ import annotations

import logging
from random import random

import anyio
import anyio.to_thread

from toolgrove.call.bodies import BodyWriter
from toolgrove.call.ending import about, failed, succeeded
from toolgrove.errors import ApprovalTakenBack, GroveError, Internal, NotKept, RateLimited, ToolError
from toolgrove.events import Listeners, ToolSucceeded, TreeChanged
from toolgrove.notation.half_characters import whole, whole_text
from toolgrove.notation.json_value import copied
from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import NO_BODIES, AuditRecord, Bodies, Outcome, outcome_of
from toolgrove.store.journal import Behind, ClaimLost, IdempotencyRecord, Journal, JournalEntry, KeyTaken, Stalled
from toolgrove.tree.effects import Effects
from toolgrove.types import Call, Clock, Next, Result

log = logging.getLogger("toolgrove.call")
_TARGETS = 20
_TARGET = 200
_RETRY = 2.0
"""After how many seconds a call that could not be kept may be worth another try, with as much again by chance."""


class AuditStep:
    """Records success, failure, refusal, cancellation and replay alike."""

    def __init__(self, journal: Journal, clock: Clock, listeners: Listeners, bodies: BodyWriter) -> None:
        self._journal = journal
        self._clock = clock
        self._listeners = listeners
        self._bodies = bodies

    async def __call__(self, call: Call, onward: Next) -> Result:
        call.started = self._clock.monotonic()
        call.settle = self._settle
        try:
            result = await onward(call)
            if not call.settled:
                await self._settle(call, result, None)
        except GroveError as error:
            return await self._fail(call, error)
        except (Behind, Stalled) as fault:
            return await self._fail(call, self._not_kept(call, fault))
        except anyio.get_cancelled_exc_class():
            if not call.settled:
                with anyio.CancelScope(shield=True):
                    await self._record_quietly(call, "unknown" if call.cut_off and call.begun else "cancelled", None)
                self._listeners.publish(failed(call, self._clock.wall()))
            raise
        except Exception:
            log.exception("call %s of %s by %s failed", call.id, call.name, call.caller.agent)
            return await self._fail(call, Internal(call_id=call.id))
        self._listeners.count(call.caller.agent, call.name, call.duration)
        if self._listeners.hear(ToolSucceeded):
            self._listeners.publish(succeeded(call, self._clock.wall()))
        return result

    async def _settle(self, call: Call, result: Result, effects: Effects | None) -> None:
        """Append the whole entry of a call that succeeded; nothing of it is kept if that fails.

        Effects that rest on what is not kept come back as Stalled or Behind: whoever made them takes them back first.
        """
        claim = call.idempotency
        kept = None
        if claim is not None and not call.replayed:
            kept = IdempotencyRecord(
                agent=call.caller.agent, key=claim.kept_as, request=claim.request, result=copied(result)
            )
        bodies = await anyio.to_thread.run_sync(self._bodies.bodies, call, result) if call.in_thread else None
        record = self._record(call, "replayed" if call.replayed else "success", result, None, bodies)
        try:
            if effects is not None:
                record = record._replace(commit=effects.id)
                await self._journal.append(
                    JournalEntry(record, effects, kept, alone=call.in_thread, overdue=call.overdue)
                )
            else:
                await self._append(JournalEntry(record, None, kept))
        except KeyTaken:
            raise
        except ClaimLost:
            raise _taken_back(call) from None
        except (Stalled, Behind) as fault:
            if effects is not None:
                raise
            if kept is not None:
                raise self._not_kept(call, fault) from None
        except OSError as fault:
            if effects is not None or kept is not None:
                raise self._not_kept(call, fault) from None
            log.error("the journal refused the record of call %s of %s: %s", call.id, call.name, fault)
        except anyio.get_cancelled_exc_class():
            self._settled(call, effects)
            raise
        self._settled(call, effects)

    async def begin(self, call: Call) -> None:
        """Leave a durable record that a call is about to leave; if that fails, it must not."""
        record = self._record(call, "begun", None, None)._replace(request=call.request)
        try:
            await self._append(JournalEntry(record, durable=True))
        except ClaimLost:
            raise _taken_back(call) from None
        except OSError as fault:
            raise self._not_kept(call, fault) from None

    async def _append(self, entry: JournalEntry) -> None:
        """Append an entry without effects; if somebody else holds the store, when it is free."""
        while True:
            try:
                return await self._journal.append(entry)
            except Stalled:
                await self._journal.writable()

    def _not_kept(self, call: Call, fault: OSError) -> NotKept:
        log.error("the journal refused call %s of %s: %s", call.id, call.name, fault)
        return not_kept(call, self._journal)

    def _settled(self, call: Call, effects: Effects | None) -> None:
        call.settled = True
        if effects is not None and effects.commits and self._listeners.hear(TreeChanged):
            ids = tuple(effects.after)
            self._listeners.publish(TreeChanged(**about(call, self._clock.wall()), node_ids=ids))

    async def _fail(self, call: Call, error: GroveError) -> Result:
        error.message, error.facts = whole_text(error.message), whole(error.facts)  # they may repeat what was given
        call.error = {**error.to_json()["error"], "retryable": error.retryable}
        outcome = outcome_of(call.error)
        if call.cut_off:
            outcome = "unknown" if call.begun else "cancelled"
        call.failed_by_itself = isinstance(error, ToolError)
        await self._record_quietly(call, outcome, error)
        self._listeners.publish(failed(call, self._clock.wall()))
        return error.answer()

    async def _record_quietly(self, call: Call, outcome: Outcome, error: GroveError | None) -> None:
        if call.settled:  # what fails after that does not change how the call ended
            return
        bodies = await anyio.to_thread.run_sync(self._bodies.bodies, call, None) if call.in_thread else None
        try:
            await self._journal.append(JournalEntry(audit=self._record(call, outcome, None, error, bodies)))
        except OSError:
            log.exception("the journal refused the record of call %s of %s", call.id, call.name)
        call.settled = True

    def _record(
        self,
        call: Call,
        outcome: Outcome,
        result: Result | None,
        error: GroveError | None,
        bodies: Bodies | None = None,
    ) -> AuditRecord:
        call.duration = self._clock.monotonic() - call.started
        caller = call.caller
        # A flood of calls that the rate limit refuses must not push other bodies out.
        if bodies is None:
            bodies = NO_BODIES if isinstance(error, RateLimited) else self._bodies.bodies(call, result)
        return AuditRecord(  # by position: naming every field would take as long as all the rest
            to_milliseconds(self._clock.wall()),
            call.id,
            caller.agent,
            caller.session,
            call.name,
            outcome,
            call.targets[:_TARGETS] or _named(call),
            round(call.duration * 1000, 3),
            None if result is None else result.get("version"),
            call.idempotency.key if call.idempotency else None,
            call.receipt or None,
            None if error is None else self._bodies.error(call, error.to_json()["error"]),
            caller.chain,
            caller.parent_call_id,
            call.run_id,
            call.used_approval,
            bodies,
        )


def not_kept(call: Call, journal: Journal) -> NotKept:
    """The refusal of a call that the journal cannot keep; not all come back at the same moment."""
    retry_after = round(_RETRY * (1 + random()), 3)  # noqa: S311 (it only spreads them)
    return NotKept(call_id=call.id, trouble=journal.trouble, retry_after=retry_after)


def _taken_back(call: Call) -> ApprovalTakenBack:
    return ApprovalTakenBack(approval_id="" if call.used_approval is None else call.used_approval.id)


def _named(call: Call) -> tuple[str, ...]:
    """The nodes that the arguments of a call name."""
    if call.tool is None or not call.tool.targets or not isinstance(call.arguments, dict):
        return ()
    given: list[str] = []
    for name in call.tool.targets:
        value = call.arguments.get(name)
        if isinstance(value, str):
            given.append(whole_text(value[:_TARGET]))
        elif isinstance(value, list):
            given += [whole_text(item[:_TARGET]) for item in value[:_TARGETS] if isinstance(item, str)]
    return tuple(given)
