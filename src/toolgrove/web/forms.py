"""What the HTTP API takes and answers, as models; the reference is written from them, and tests hold answers to it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from toolgrove.pool import offer, receipt
from toolgrove.store.approvals import State
from toolgrove.store.audit import Outcome
from toolgrove.types import Kind, Role


class Form(BaseModel):
    """A JSON object; keys are camelCase, and there are no others."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


class Health(Form):
    """How the gateway is."""

    status: Literal["ok", "degraded"] = Field(description="Degraded: what agents do cannot be kept.")


class ErrorFacts(BaseModel):
    """What went wrong, and what to do next; further facts stand beside these."""

    model_config = ConfigDict(extra="allow", strict=True)

    code: Literal[
        "invalid_argument", "not_found", "forbidden", "conflict", "rate_limited", "internal", "unauthenticated"
    ]
    message: str


class Failure(Form):
    """An error."""

    error: ErrorFacts


class SourceForm(Form):
    """A source of tools."""

    name: str
    kind: Kind
    tools: int
    problem: str = Field(description="Empty while it is up.")


class RejectedForm(Form):
    """A tool that did not come into the pool."""

    name: str
    source: str
    reason: str


class AgentForm(Form):
    """An agent at a glance."""

    name: str
    description: str
    role: Role
    read_only: bool
    tools: int
    warnings: list[str]


class MinuteForm(Form):
    """The calls of one minute."""

    minute: int = Field(description="Its first second, in seconds since 1970.")
    calls: int
    failures: int
    refusals: int


class ProjectForm(Form):
    """The project at a glance."""

    project: str
    revision: int = Field(description="Counts the states of the pool.")
    sources: list[SourceForm]
    rejected: list[RejectedForm]
    tools: int
    agents: list[AgentForm]
    pending_approvals: int
    traffic: list[MinuteForm] = Field(description="The last minutes in which something was called, oldest first.")
    healthy: bool


class PoolToolForm(Form):
    """A tool of the pool."""

    name: str
    source: str
    kind: Kind
    standing: offer.Standing
    reason: str = Field(description="Why it is not ready.")
    description: str


class PoolForm(Form):
    """Every tool that there is."""

    revision: int
    tools: list[PoolToolForm]


class OutgoingForm(Form):
    """The request of an HTTP tool, with the names of secrets in their place."""

    method: str
    url: str


class ApprovalForm(Form):
    """A call that waits for a person, or waited."""

    id: str
    state: State
    agent: str
    tool: str
    arguments: dict[str, Any]
    sends: OutgoingForm | None = Field(description="What an HTTP tool will send; null for other tools.")
    definition: dict[str, Any]
    definition_hash: str
    rule: str = Field(description="Why it needs an approval.")
    receipt: str
    requested_at: float
    expires_at: float
    decided_at: float | None
    decided_by: str | None
    reason: str | None


class ApprovalList(Form):
    """Approvals, oldest first."""

    items: list[ApprovalForm]


class Decision(Form):
    """A person's word on a call that waits; the first one stands."""

    approve: bool
    reason: str = Field(default="", description="What the agent is told.")


class PinForm(Form):
    """A pinned definition, and what its server says now if that differs."""

    server: str
    tool: str
    state: Literal["pinned", "changed"]
    hash: str
    pinned_at: float
    pinned_by: str
    seen_hash: str | None
    seen_at: float | None
    diff: str | None


class PinList(Form):
    """Pins."""

    items: list[PinForm]


class Acceptance(Form):
    """The definition that was looked at, by its hash."""

    accept: str = Field(description="seenHash, or at least its first eight characters.")


class AuditForm(Form):
    """One call in the audit log, bound to the record before it."""

    number: int
    timestamp: str
    call_id: str
    agent: str
    session: str
    operation: str = Field(description="The tool; security.… where the edge refused a request before any call.")
    outcome: Outcome
    targets: list[str]
    arguments: str = Field(description="A fingerprint; the arguments themselves are not kept.")
    duration_ms: float
    version: str | None = None
    idempotency_key: str | None = None
    receipt: str | None = None
    error: dict[str, Any] | None = None
    previous: str
    hash: str


class AuditList(Form):
    """A page of audit records."""

    items: list[AuditForm]
    next: int | None = Field(description="The after (or before, newest first) of the next page; null at the end.")


class BreachForm(Form):
    """Where the chain of records does not hold."""

    number: int
    problem: str


class Verification(Form):
    """Whether the log is as it was written."""

    whole: bool
    breach: BreachForm | None


class VerdictForm(Form):
    """What was decided about a tool, and by which rule."""

    verdict: receipt.Standing
    rule: str
    source: str


class ReceiptForm(Form):
    """Why an agent has each tool of the pool, or has not."""

    agent: str
    depth: int
    revision: int
    hash: str
    tools: dict[str, VerdictForm]
    sources: dict[str, SourceForm]
    rejected: list[RejectedForm]
    warnings: list[str]


class FunctionForm(Form):
    """A function as OpenAI-style APIs take it."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None


class OpenAiTool(Form):
    """A tool as OpenAI-style APIs take it."""

    type: Literal["function"]
    function: FunctionForm


class RunCall(Form):
    """One call of a run."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class RunForm(Form):
    """Calls, made one after the other."""

    calls: list[RunCall] = Field(max_length=100)
