"""Outermost step: turns failures into answers and leaves exactly one record of every call."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

import anyio

from toolgrove.call.ending import failed, succeeded
from toolgrove.errors import GroveError, Internal
from toolgrove.events import Listeners, TreeChanged
from toolgrove.store.audit import AuditRecord, Outcome, timestamp
from toolgrove.store.journal import Effects, Entry, IdempotencyRecord, Journal
from toolgrove.tree.json_value import canonical, copied
from toolgrove.types import Call, Clock, Next, Result

log = logging.getLogger("toolgrove.call")
_REFUSALS = frozenset(("forbidden", "rate_limited"))
_TARGETS = 20
_TARGET = 200


class AuditStep:
    """Records success, failure, refusal, cancellation and replay alike."""

    def __init__(self, journal: Journal, clock: Clock, listeners: Listeners) -> None:
        self._journal = journal
        self._clock = clock
        self._listeners = listeners

    async def __call__(self, call: Call, onward: Next) -> Result:
        call.started = self._clock.monotonic()
        call.settle = self._settle
        try:
            result = await onward(call)
            if not call.settled:
                await self._settle(call, result, None)
        except GroveError as error:
            return await self._fail(call, error)
        except anyio.get_cancelled_exc_class():
            if not call.settled:
                with anyio.CancelScope(shield=True):
                    await self._record_quietly(call, "cancelled", None)
            raise
        except Exception:
            log.exception("call %s of %s by %s failed", call.id, call.name, call.caller.agent)
            return await self._fail(call, Internal(call_id=call.id))
        if self._listeners:
            self._listeners.tell(succeeded(call, self._clock.wall()))
        return result

    async def _settle(self, call: Call, result: Result, effects: Effects | None) -> None:
        """Append the whole entry of a call that succeeded; nothing of it is kept if that fails."""
        claim = call.idempotency
        kept = None
        if claim is not None and not call.replayed:
            kept = IdempotencyRecord(
                agent=call.caller.agent, key=claim.key, request=claim.request, result=copied(result)
            )
        record = self._record(call, "replayed" if call.replayed else "success", result.get("version"), None)
        try:
            await self._journal.append(Entry(audit=record, effects=effects, idempotency=kept))
        except OSError:
            log.exception("the journal refused call %s of %s", call.id, call.name)
            if effects is not None or kept is not None:
                raise Internal(call_id=call.id, reason="journal_unavailable") from None
        except anyio.get_cancelled_exc_class():
            self._settled(call, effects)
            raise
        self._settled(call, effects)

    def _settled(self, call: Call, effects: Effects | None) -> None:
        call.settled = True
        if effects is not None and effects.commits and self._listeners:
            agent, ids = call.caller.agent, tuple(effects.after)
            self._listeners.tell(TreeChanged(agent=agent, tool=call.name, node_ids=ids, timestamp=self._clock.wall()))

    async def _fail(self, call: Call, error: GroveError) -> Result:
        answer = error.to_json()
        outcome: Outcome = "refused" if error.code in _REFUSALS else "failure"
        call.error = {**answer["error"], "retryable": error.retryable}
        await self._record_quietly(call, outcome, error)
        self._listeners.tell(failed(call, self._clock.wall()))
        return answer

    async def _record_quietly(self, call: Call, outcome: Outcome, error: GroveError | None) -> None:
        try:
            await self._journal.append(Entry(audit=self._record(call, outcome, None, error)))
        except OSError:
            log.exception("the journal refused the record of call %s of %s", call.id, call.name)
        call.settled = True

    def _record(self, call: Call, outcome: Outcome, version: str | None, error: GroveError | None) -> AuditRecord:
        call.duration = self._clock.monotonic() - call.started
        return AuditRecord(
            timestamp=timestamp(self._clock.wall()),
            call_id=call.id,
            agent=call.caller.agent,
            session=call.caller.session,
            operation=call.name,
            outcome=outcome,
            targets=call.targets[:_TARGETS] or tuple(_named(call)),
            arguments=_fingerprint(call),
            duration_ms=round(call.duration * 1000, 3),
            version=version,
            idempotency_key=call.idempotency.key if call.idempotency else None,
            receipt=call.receipt or None,
            error=None if error is None else error.to_json()["error"],
        )


def _named(call: Call) -> Iterable[str]:
    if call.tool is None or not isinstance(call.arguments, dict):
        return
    for name in call.tool.targets:
        value = call.arguments.get(name)
        if isinstance(value, str):
            yield value[:_TARGET]
        elif isinstance(value, list):
            yield from [item[:_TARGET] for item in value[:_TARGETS] if isinstance(item, str)]


def _fingerprint(call: Call) -> str:
    try:
        text = canonical(call.arguments)
    except (TypeError, ValueError, RecursionError):
        return "unreadable"
    return hashlib.blake2s(text.encode(), digest_size=8).hexdigest()
