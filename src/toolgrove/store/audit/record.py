"""Audit records: what each says about a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from toolgrove.store.audit.bodies import NO_BODIES, Bodies
from toolgrove.types import UsedApproval

Outcome = Literal["success", "failure", "refused", "waiting", "cancelled", "replayed", "begun", "unknown"]
OUTCOME_UNKNOWN = "outcome_unknown"
"""The reason in the record of a call that was cut off, and of the refusal of its first repetition."""
Kind = Literal[
    "call", "late_outcome", "approval", "pin", "token", "configuration", "sign_in", "refused_request", "audit", "store"
]
LATE: Kind = "late_outcome"
"""A note that the outcome of a call became known after another process had closed it; no end of a call itself."""


class AuditRecord(NamedTuple):
    """Who called what, on what, and how it ended; there is one for every call, and a tuple is made fastest.

    `chain` names the agents from the outermost to the caller, `run_id` the outermost run, `parent_call_id` the call
    that a delegated caller works for. What people and strangers do leaves records of other kinds: `by` did it, `agent`
    is whom it concerns, and `details` says what. A call that `begun` to change something outside has a `request`, by
    which its repetition is known. `commit` names the change of the tree that a call made.
    """

    timestamp: str
    call_id: str
    agent: str
    session: str
    operation: str
    outcome: Outcome
    targets: tuple[str, ...] = ()
    duration_ms: float = 0.0
    version: str | None = None
    idempotency_key: str | None = None
    receipt: str | None = None
    error: Mapping[str, Any] | None = None
    chain: tuple[str, ...] = ()
    parent_call_id: str | None = None
    run_id: str = ""
    approval: UsedApproval | None = None
    bodies: Bodies = NO_BODIES
    kind: Kind = "call"
    by: str | None = None
    details: Mapping[str, Any] | None = None
    request: str | None = None
    commit: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as a line of the log holds it."""
        record: dict[str, Any] = {
            "timestamp": self.timestamp,
            "callId": self.call_id,
            "agent": self.agent,
            "session": self.session,
            "operation": self.operation,
            "outcome": self.outcome,
            "targets": self.targets,
            "durationMs": self.duration_ms,
            "depth": max(len(self.chain) - 1, 0),
            "chain": self.chain,
            "runId": self.run_id,
        }
        if self.parent_call_id is not None:
            record["parentCallId"] = self.parent_call_id
        if self.kind != "call":
            record["kind"] = self.kind
        if self.by is not None:
            record["by"] = self.by
        if self.version is not None:
            record["version"] = self.version
        if self.idempotency_key is not None:
            record["idempotencyKey"] = self.idempotency_key
        if self.receipt is not None:
            record["receipt"] = self.receipt
        if self.error is not None:
            record["error"] = self.error
        if self.details is not None:
            record["details"] = self.details
        if self.approval is not None:
            record["approval"] = self.approval._asdict()
        if self.request is not None:
            record["request"] = self.request
        if self.commit is not None:
            record["commit"] = self.commit
        if self.bodies is not NO_BODIES:
            self.bodies.state_hashes(record)
        return record
