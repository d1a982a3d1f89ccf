"""Answers a repeated request with the first one's result, also while the first one still runs."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from contextlib import suppress

import anyio

from toolgrove.errors import InvalidArgument, KeyReused
from toolgrove.notation.half_characters import whole
from toolgrove.notation.json_value import canonical, copied
from toolgrove.store.journal import Journal, KeyTaken
from toolgrove.types import Call, IdempotencyClaim, Next, Result, Tool

KEY = "idempotencyKey"
MAX_KEY = 255
# A version is a condition on the request, not part of it: a retry may come with a fresh one.
_ASIDE = frozenset((KEY, "versionToken"))


def is_repeatable(tool: Tool) -> bool:
    """Whether a key is for us; elsewhere it is the tool's own argument."""
    return tool.mutates and tool.kind == "builtin"


class IdempotencyStep:
    """One effect per agent and key; the keys of a delegated run are its own."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._running: dict[tuple[str, str], anyio.Event] = {}

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        key = call.arguments.get(KEY)
        if key is None or not is_repeatable(call.granted):
            return onward(call)
        if call.arguments.get("dryRun") is True:  # no effect to have only once, and the key is for the real one
            return onward(call)
        return self._once(call, onward, key)

    async def _once(self, call: Call, onward: Next, key: str) -> Result:
        claim = _claim(call, key)
        place = (call.caller.agent, claim.kept_as)
        while True:
            record = await self._journal.recall(*place)
            if record is not None:
                if record.request != claim.request:
                    raise KeyReused(key=key)
                call.idempotency, call.replayed = claim, True
                replay: Result = whole(copied(record.result))
                return replay
            running = self._running.get(place)
            if running is not None:
                await running.wait()
                continue
            with suppress(KeyTaken):  # another replica was quicker: its result is there now
                return await self._run(call, onward, claim)

    async def _run(self, call: Call, onward: Next, claim: IdempotencyClaim) -> Result:
        place = (call.caller.agent, claim.kept_as)
        call.idempotency = claim
        self._running[place] = done = anyio.Event()
        try:
            result = await onward(call)
            # The record must be in the journal before anyone who waits looks again.
            if not call.settled and call.settle is not None:
                await call.settle(call, result, None)
            return result
        finally:
            del self._running[place]
            done.set()


def _claim(call: Call, key: str) -> IdempotencyClaim:
    if not key or len(key) > MAX_KEY or not key.isprintable():
        raise InvalidArgument(
            f"idempotencyKey must have 1 to {MAX_KEY} printable characters.", reason="idempotency_key"
        )
    request = {name: value for name, value in call.arguments.items() if name not in _ASIDE}
    digest = hashlib.sha256(canonical([call.name, request]).encode()).hexdigest()
    caller = call.caller
    kept_as = f"{caller.session}\n{key}" if caller.is_delegated else key  # no key of a client has a line end
    return IdempotencyClaim(key=key, kept_as=kept_as, request=digest)
