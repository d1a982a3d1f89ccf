"""Stops the first repetition of a call that a crash cut off: it may have run, and its agent should look first."""

from __future__ import annotations

from collections.abc import Awaitable

from toolgrove.call.begun import changes_outside
from toolgrove.errors import OutcomeUnknown
from toolgrove.notation.json_value import canonical
from toolgrove.store.journal import Journal
from toolgrove.types import Call, EarlierCall, Next, Result


class CutOffStep:
    """Recognises a call by its agent, tool and arguments; an agent that repeats it once more means it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if changes_outside(call.granted):
            request = canonical([call.caller.agent, call.name, call.arguments])
            call.request = self._journal.fingerprint(request)
            doubt = self._journal.unfinished.doubt(call.request)
            if doubt is not None:
                call.earlier = EarlierCall(doubt.call_id, doubt.begun_at, doubt.became)
                if not doubt.is_told:
                    doubt.is_told = True
                    raise OutcomeUnknown(
                        tool=call.name, call_id=doubt.call_id, begun_at=doubt.begun_at, became=doubt.became
                    )
        return onward(call)
