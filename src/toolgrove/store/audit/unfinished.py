"""Calls that began to change something outside, and those whose outcome is unknown.

A call has one final record. Where several processes write one store, another may close a call whose process fell
silent: its outcome is unknown then, and that stands. If the silent process comes back and knows how the call ended, it
leaves a note beside that (a record of the kind `late_outcome`), which the next repetition of the call is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from toolgrove.store.audit.record import LATE, OUTCOME_UNKNOWN, AuditRecord

State = Literal["begun", "unknown", "told"]
_ITS_OWN = frozenset(
    ("number", "previous", "hash", "seal", "arguments", "argumentsHash", "result", "resultHash", "durationMs")
)
_KNOWN_LATER = "The outcome became known later: the call was closed while its process could not be heard."
_STILL_UNKNOWN = "The process of this call came back, and ended before the outcome was known."
_CUT_OFF = "The process ended while this call was under way. It may have run: look before it is called again."


@dataclass(slots=True)
class Doubt:
    """A call whose outcome is unknown; once its agent was told so, the next repetition goes on."""

    call_id: str
    begun_at: str
    record: Mapping[str, Any]
    is_told: bool = False
    became: str | None = None
    """The outcome, where that became known later."""

    def remembered(self) -> RememberedCall:
        """How a store keeps it."""
        return RememberedCall(self.call_id, "told" if self.is_told else "unknown", self.record, self.became)


class RememberedCall(NamedTuple):
    """A call as a store has to remember it; without a state it may be forgotten."""

    call_id: str
    state: State | None
    record: Mapping[str, Any]
    became: str | None = None


class Unfinished:
    """Listens to every record; one thread may tell it while another asks."""

    def __init__(self, kept: Sequence[RememberedCall] = ()) -> None:
        self._open: dict[str, Mapping[str, Any]] = {}
        self._doubts: dict[str, Doubt] = {}
        for one in kept:
            self.adopt(one)

    def copy(self) -> Unfinished:
        """What it holds now, for `take_back`."""
        twin = Unfinished()
        twin.take_back(self)
        return twin

    def take_back(self, before: Unfinished) -> None:
        """Forget what was heard since the copy was made."""
        self._open, self._doubts = dict(before._open), dict(before._doubts)

    def share(self, others: Unfinished) -> None:
        """Take over the doubts of a store that several processes write, which knows them all."""
        self._doubts = dict(others._doubts)

    def adopt(self, call: RememberedCall) -> None:
        """Take over what a store remembers of a call."""
        if call.state == "begun":
            self._open[call.call_id] = call.record
        elif call.state is not None:
            self._doubts[_request(call.record)] = _doubt(call.record, is_told=call.state == "told", became=call.became)

    def is_open(self, call_id: str) -> bool:
        """Whether a call began, and nobody here has heard how it ended."""
        return call_id in self._open

    def known_later(self, record: AuditRecord) -> AuditRecord:
        """The end of a call that somebody else has closed meanwhile, as a note beside that."""
        note = _STILL_UNKNOWN if record.outcome == "unknown" else _KNOWN_LATER
        details = {"note": note, "begunAt": self._open[record.call_id]["timestamp"]}
        return record._replace(kind=LATE, details=details)

    @property
    def has_open(self) -> bool:
        """Whether any call that began has not ended."""
        return bool(self._open)

    @property
    def open_calls(self) -> int:
        """How many calls began in this process and have not ended."""
        return len(self._open)

    @property
    def unknown_calls(self) -> int:
        """How many calls there are whose outcome nobody knows yet."""
        return sum(doubt.became is None for doubt in list(self._doubts.values()))

    @property
    def is_empty(self) -> bool:
        """Whether every call that began has ended, and none is in doubt."""
        return not self._open and not self._doubts

    def doubt(self, request: str) -> Doubt | None:
        """The earlier call with this fingerprint, if its outcome is unknown."""
        return self._doubts.get(request)

    def hear(self, record: Mapping[str, Any]) -> Sequence[RememberedCall]:
        """Take note of a record; what a store has to remember or may forget since then."""
        call_id, outcome = record["callId"], record["outcome"]
        if outcome == "begun":
            self._open[call_id] = record
            heard = [RememberedCall(call_id, "begun", record)]
            settled = self._doubts.pop(_request(record), None)
            if settled is not None:  # it runs anew, so its agent knows
                heard.append(RememberedCall(settled.call_id, None, settled.record))
            return heard
        if outcome == "unknown":
            begun = self._open.pop(call_id, None) or _as_begun(record)
            heard = [RememberedCall(call_id, "unknown", begun)]
            like = self._doubts.get(_request(begun))
            if like is not None and like.call_id != call_id:  # of two that are alike, one is enough to stop the next
                heard.append(RememberedCall(like.call_id, None, like.record))
            self._doubts[_request(begun)] = _doubt(begun)
            return heard
        if record.get("kind") == LATE:
            self._open.pop(call_id, None)
            return [doubt.remembered() for doubt in self._became(call_id, outcome)]
        if self._open.pop(call_id, None) is not None:
            return [RememberedCall(call_id, None, record)]
        error = record.get("error")
        if self._doubts and error is not None and error.get("reason") == OUTCOME_UNKNOWN:
            return [doubt.remembered() for doubt in self._told(error.get("callId"), error.get("laterOutcome"))]
        return ()

    def close(self, now: str, lived: Callable[[str], str]) -> list[Mapping[str, Any]]:
        """The records of calls that were cut off; to be heard in their turn.

        They end when the process of the call was last known to live: `lived` tells that, empty where nobody knows.
        """
        return [_cut_off(record, min(lived(call_id), now)) for call_id, record in self._open.items()]

    def _told(self, call_id: Any, became: Any) -> Iterator[Doubt]:
        """Note that an agent was told what is known of a call; if more is known by now, it is told again."""
        for doubt in list(self._doubts.values()):
            if doubt.call_id == call_id and doubt.became == became:
                doubt.is_told = True
                yield doubt

    def _became(self, call_id: str, outcome: str) -> Iterator[Doubt]:
        """Note an outcome that became known; whoever repeats the call is told that first."""
        for request, doubt in self._doubts.items():
            if doubt.call_id == call_id and outcome != "unknown":
                self._doubts[request] = told = replace(doubt, is_told=False, became=outcome)
                yield told


def _cut_off(begun: Mapping[str, Any], lived: str) -> Mapping[str, Any]:
    """The end of a call whose process lived at least until a moment, or until it began."""
    since = begun["timestamp"]
    until = max(since, lived)
    span = datetime.fromisoformat(until) - datetime.fromisoformat(since)
    return {
        **_facts(begun),
        "timestamp": until,
        "outcome": "unknown",
        "durationMs": span.total_seconds() * 1000,
        "error": {"code": "internal", "reason": OUTCOME_UNKNOWN, "message": _CUT_OFF},
        "details": {"begunAt": since},
    }


def _request(record: Mapping[str, Any]) -> str:
    return str(record.get("request", ""))


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says, without its place in the chain and its bodies."""
    return {name: value for name, value in record.items() if name not in _ITS_OWN}


def _as_begun(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The end of a call that another process began, dated by its beginning."""
    details = record.get("details") or {}
    return {**record, "timestamp": details.get("begunAt", record["timestamp"])}


def _doubt(record: Mapping[str, Any], *, is_told: bool = False, became: str | None = None) -> Doubt:
    return Doubt(call_id=record["callId"], begun_at=record["timestamp"], record=record, is_told=is_told, became=became)
