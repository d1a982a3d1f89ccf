"""The latest runs and what happened in them, kept in memory for whoever looks at one in the console."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from toolgrove.errors import NotFound
from toolgrove.store.audit import AuditLog, AuditQuery
from toolgrove.web import schemas

RUNS = 50
EVENTS = 2_000
TEXT = 20_000
_ENDS = frozenset(("tool_succeeded", "tool_failed"))
_KEPT_OUT = frozenset(("result", "output"))
"""What a call answered is in its record, if the policy of the project keeps it at all."""


@dataclass(kw_only=True, slots=True)
class _Kept:
    agent: str
    kind: Literal["model", "calls"]
    task: str | None
    started_at: float
    state: Literal["running", "success", "failure", "ended"] = "running"
    events: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    calls: int = 0
    seconds: float | None = None


class RunLog:
    """Takes the events of runs; the oldest runs make room for new ones."""

    def __init__(self, log: Callable[[], AuditLog], scrub: Callable[[Any], Any], now: Callable[[], float]) -> None:
        self._log, self._scrub, self._now = log, scrub, now
        self._runs: OrderedDict[str, _Kept] = OrderedDict()

    def begin(self, agent: str, kind: Literal["model", "calls"], task: str | None) -> Recording:
        """A run is about to start; its first event says what it is called."""
        told = None if task is None else str(self._scrub(task))[:TEXT]
        return Recording(self._keep, _Kept(agent=agent, kind=kind, task=told, started_at=self._now()))

    def list(self) -> schemas.RunList:
        """The runs, the newest first."""
        return schemas.RunList(
            items=[
                schemas.RunSummary(
                    id=run_id,
                    agent=kept.agent,
                    kind=kept.kind,
                    started_at=kept.started_at,
                    state=kept.state,
                    calls=kept.calls,
                    seconds=kept.seconds,
                )
                for run_id, kept in reversed(self._runs.items())
            ]
        )

    async def story(self, run_id: str) -> schemas.RunStory:
        """One run; of one that is not kept, what the audit log says of its calls."""
        kept = self._runs.get(run_id)
        if kept is None:
            return await self._from_records(run_id)
        return schemas.RunStory(
            id=run_id,
            agent=kept.agent,
            state=kept.state,
            input=kept.task,
            started_at=kept.started_at,
            events=kept.events,
            left_out=kept.left_out,
            kept=True,
        )

    async def _from_records(self, run_id: str) -> schemas.RunStory:
        found = (await self._log().records(AuditQuery(run=run_id, kind="call", limit=1_000))).records
        records = [record for record in found if record["outcome"] != "begun"]
        if not records:
            raise NotFound(f"There is no run {run_id!r}, or the log does not keep it any more.", reason="run")
        outermost = min(records, key=lambda record: int(record["depth"]))
        return schemas.RunStory(
            id=run_id,
            agent=outermost["chain"][0] if outermost["chain"] else outermost["agent"],
            state="ended",
            input=None,
            started_at=_begun(records[0]),
            events=[_event(record) for record in records],
            left_out=0,
            kept=False,
        )

    def _keep(self, run_id: str, kept: _Kept) -> None:
        self._runs[run_id] = kept
        while len(self._runs) > RUNS:
            self._runs.popitem(last=False)


class Recording:
    """The events of one run as they come."""

    def __init__(self, keep: Callable[[str, _Kept], None], kept: _Kept) -> None:
        self._keep, self._kept, self._id = keep, kept, ""

    def take(self, event: dict[str, Any]) -> None:
        """An event was sent to whoever follows the run."""
        kept = self._kept
        if not self._id and "runId" in event:
            self._id = event["runId"]
            self._keep(self._id, kept)
        kept.calls += event["type"] in _ENDS
        if event["type"] == "run_finished":
            kept.state, kept.seconds = event["outcome"], event["seconds"]
        elif self._goes_on(event):
            return
        if len(kept.events) < EVENTS or event["type"] == "run_finished":
            kept.events.append({name: value for name, value in event.items() if name not in _KEPT_OUT})
        else:
            kept.left_out += 1

    def end(self) -> None:
        """Nobody follows the run any more."""
        if self._kept.state == "running":
            self._kept.state = "ended"

    def _goes_on(self, event: dict[str, Any]) -> bool:
        """Join what a model says in pieces."""
        last = self._kept.events[-1] if self._kept.events else None
        if event["type"] != "text" or last is None or last["type"] != "text" or last["chain"] != event["chain"]:
            return False
        last["text"] = (last["text"] + event["text"])[:TEXT]
        return True


def _begun(record: dict[str, Any]) -> float:
    ended = datetime.fromisoformat(record["timestamp"]).timestamp()
    return ended - float(record["durationMs"]) / 1000


def _event(record: dict[str, Any]) -> dict[str, Any]:
    """The record of a call as the event that its end was."""
    done = record["outcome"] in ("success", "replayed")
    told = {
        "type": "tool_succeeded" if done else "tool_failed",
        "callId": record["callId"],
        "tool": record["operation"],
        "agent": record["agent"],
        "chain": record["chain"],
        "depth": record["depth"],
        "runId": record["runId"],
        "duration": record["durationMs"] / 1000,
        "timestamp": record["timestamp"],
    }
    if "parentCallId" in record:
        told["parentCallId"] = record["parentCallId"]
    return told if done else {**told, "error": record.get("error") or {"code": "internal", "message": ""}}
