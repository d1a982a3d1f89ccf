"""What the HTTP API takes and answers; its reference and the console's types are written from these.

A body is a pydantic model, since a stranger sent it. An answer is a dataclass, since there is nothing to validate in
what is ours; pydantic describes it and writes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, TypeAdapter, model_validator
from pydantic.alias_generators import to_camel

from toolgrove.notation.unseen_text import visible_json
from toolgrove.pool import offer, receipt, snapshot
from toolgrove.pool.definition_lint import suspect
from toolgrove.store import audit
from toolgrove.store import state as project_state
from toolgrove.types import Kind, Role

MAX_CALLS = 100
ErrorCode = Literal[
    "invalid_argument", "not_found", "forbidden", "conflict", "rate_limited", "internal", "unauthenticated"
]
_CAMEL = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


class Body(BaseModel):
    """An object that a request carries; its keys are camelCase, and there are no others."""

    model_config = _CAMEL


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An object that we answer; its keys are camelCase, and there are no others."""

    __pydantic_config__ = _CAMEL

    def to_json(self) -> dict[str, Any]:
        """The object as the API and the command line write it."""
        kind: Any = type(self)
        written: dict[str, Any] = _writer(kind).dump_python(self, by_alias=True)
        return written


@cache
def _writer(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class Health(Answer):
    """Whether the gateway can do its work, for a monitor to ask."""

    status: Annotated[Literal["ok", "degraded"], Field(description="Degraded: what agents do cannot be kept.")]


class ErrorFacts(BaseModel):
    """What went wrong, and what to do next; further facts stand beside these."""

    model_config = ConfigDict(extra="allow", strict=True)

    code: ErrorCode
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure(Answer):
    """What every refusal and every failure answers, here and in a tool's result."""

    error: ErrorFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Source(Answer):
    """Where tools come from: an MCP server, HTTP tools, or extensions."""

    name: str
    kind: Kind
    tools: int
    problem: Annotated[str, Field(description="Empty while it is up.")]

    @classmethod
    def of(cls, found: snapshot.SourceState) -> Source:
        """How a source of the pool stands."""
        return cls(name=found.name, kind=found.kind, tools=found.tools, problem=found.problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectedTool(Answer):
    """A tool that did not come into the pool."""

    name: str
    source: str
    reason: str

    @classmethod
    def of(cls, rejected: offer.Offer) -> RejectedTool:
        """An offer that the pool turned down."""
        return cls(name=rejected.name, source=rejected.source, reason=rejected.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSummary(Answer):
    """What an agent is, and how many tools it has now."""

    name: str
    description: str
    role: Role
    read_only: bool
    tools: int
    warnings: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficMinute(Answer):
    """How many calls a minute had, and how many of them failed or were refused."""

    minute: Annotated[int, Field(description="Its first second, in seconds since 1970.")]
    calls: int
    failures: int
    refusals: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Project(Answer):
    """The project as an overview shows it: sources, agents, traffic and what waits."""

    project: str
    revision: Annotated[int, Field(description="Counts the states of the pool.")]
    sources: list[Source]
    rejected: list[RejectedTool]
    tools: int
    agents: list[AgentSummary]
    pending_approvals: int
    traffic: Annotated[
        list[TrafficMinute], Field(description="The last minutes in which something was called, oldest first.")
    ]
    healthy: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolTool(Answer):
    """A tool of the pool, whether or not an agent can have it."""

    name: str
    source: str
    kind: Kind
    standing: offer.Standing
    reason: Annotated[str, Field(description="Why it is not ready.")]
    description: str

    @classmethod
    def of(cls, offered: offer.Offer) -> PoolTool:
        """What a source offers, ready or not."""
        return cls(
            name=offered.name,
            source=offered.source,
            kind=offered.kind,
            standing=offered.standing,
            reason=offered.reason,
            description="" if offered.tool is None else offered.tool.spec.description,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool(Answer):
    """Every tool of every source at one revision of the pool."""

    revision: int
    tools: list[PoolTool]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutgoingRequest(Answer):
    """The request of an HTTP tool, with the names of secrets in their place."""

    method: str
    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierCall(Answer):
    """A call whose outcome is unknown."""

    call_id: str
    begun_at: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval(Answer):
    """A call that waits for a person, or waited."""

    id: str
    state: Annotated[
        project_state.ApprovalState,
        Field(
            description="Claimed: its call runs now. Unknown: the gateway died meanwhile; the call may have arrived."
        ),
    ]
    agent: str
    chain: Annotated[list[str], Field(description="The agents from the outermost to the one that calls.")]
    tool: str
    arguments: dict[str, Any]
    arguments_text: Annotated[str, Field(description="The same as JSON text in which no character hides.")]
    effect: Annotated[
        str | None,
        Field(
            description="What the call would change, in names in which no character hides; null if only it can tell."
        ),
    ]
    footprint_hash: Annotated[
        str | None, Field(description="Stands for what it would remove or overwrite; null if that is nothing.")
    ]
    replaces: Annotated[
        str | None, Field(description="An earlier approval of this call, which would have changed something else.")
    ]
    earlier: Annotated[
        EarlierCall | None, Field(description="The same call before a crash cut it off: it may have run.")
    ]
    sends: Annotated[OutgoingRequest | None, Field(description="What an HTTP tool will send; null for other tools.")]
    definition: dict[str, Any]
    definition_hash: str
    rule: Annotated[str, Field(description="Why it needs an approval.")]
    receipt: str
    requested_at: float
    expires_at: float
    decided_at: float | None
    decided_by: str | None
    reason: str | None
    lasts: Annotated[
        project_state.Lasting | None,
        Field(alias="for", description="Holds so long for any arguments; null for one that is good once."),
    ]
    uses: Annotated[int, Field(description="How often it was used, if it holds for a while.")]
    call_id: Annotated[str | None, Field(description="The call that has it, or used it last.")]

    @classmethod
    def of(cls, kept: project_state.Approval) -> Approval:
        """An approval of the inbox, as the person who decides needs it."""
        asked = kept.request
        return cls(
            id=kept.id,
            state=kept.state,
            agent=asked.agent,
            chain=list(asked.chain),
            tool=asked.tool,
            arguments=dict(asked.arguments),
            arguments_text=visible_json(asked.arguments),
            effect=asked.effect or None,
            footprint_hash=asked.footprint_hash or None,
            replaces=kept.replaces or None,
            earlier=None if asked.earlier is None else EarlierCall(**asked.earlier._asdict()),
            sends=None if asked.sends is None else OutgoingRequest(**asked.sends),
            definition=dict(asked.definition),
            definition_hash=asked.definition_hash,
            rule=asked.rule,
            receipt=asked.receipt,
            requested_at=kept.requested_at,
            expires_at=kept.expires_at,
            decided_at=kept.decided_at,
            decided_by=kept.decided_by or None,
            reason=kept.reason or None,
            lasts=kept.lasts,
            uses=kept.uses,
            call_id=kept.call_id or None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalList(Answer):
    """Approvals, oldest first."""

    items: list[Approval]


class Decision(Body):
    """A person's word on a call that waits; the first one stands."""

    approve: bool
    reason: str = Field(default="", description="What the agent is told.")
    lasts: project_state.Lasting | None = Field(
        default=None,
        alias="for",
        description="Approves for so long every call of this tool by this agent, whatever its arguments.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin(Answer):
    """A pinned definition, and what its server says now if that differs."""

    server: str
    tool: str
    state: Annotated[
        project_state.PinState, Field(description="Pending: nothing was accepted yet. Refused: a person keeps it out.")
    ]
    hash: Annotated[str, Field(description="Empty while nothing was accepted.")]
    pinned_at: float
    pinned_by: str
    seen_hash: str | None
    seen_at: float | None
    diff: Annotated[str | None, Field(description="What waits, held against what was accepted.")]
    remarks: Annotated[list[str], Field(description="What in the waiting definition is worth a second look.")]
    refused_by: str | None

    @classmethod
    def of(cls, kept: project_state.Pin) -> Pin:
        """A pin, as the person who accepts definitions needs it."""
        return cls(
            server=kept.server,
            tool=kept.own_name,
            state=kept.state,
            hash=kept.hash,
            pinned_at=kept.pinned_at,
            pinned_by=kept.pinned_by,
            seen_hash=kept.seen_hash or None,
            seen_at=kept.seen_at,
            diff=kept.diff() or None,
            remarks=suspect(kept.seen_definition or {}).flags(()),
            refused_by=kept.refused_by or None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PinList(Answer):
    """Pins, by server and tool."""

    items: list[Pin]


class PinDecision(Body):
    """A person's word on the definition that was looked at, by its hash: accept or refuse, one of the two."""

    accept: str = Field(default="", description="seenHash, or at least its first eight characters.")
    refuse: str = Field(default="", description="The same, to keep it out.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.accept) == bool(self.refuse):
            raise ValueError("accept or refuse, one of the two")
        return self


class UsedApproval(BaseModel):
    """An approval that a call used up."""

    model_config = _CAMEL

    id: str
    by: str = Field(description="Who gave it.")


class AuditRecord(BaseModel):
    """One call in the audit log, bound to the record before it."""

    model_config = _CAMEL

    number: int
    timestamp: str
    call_id: str
    agent: str
    session: str
    operation: str = Field(description="The tool; security.… where the edge refused a request before any call.")
    outcome: audit.Outcome
    targets: list[str]
    duration_ms: float
    depth: int = Field(description="How many agents are above the one that called.")
    chain: list[str] = Field(description="The agents from the outermost to the one that called.")
    run_id: str = Field(description="The outermost run; a call outside of one has its own id here.")
    parent_call_id: str | None = Field(default=None, description="The call that a sub-agent works for.")
    version: str | None = None
    idempotency_key: str | None = None
    receipt: str | None = None
    error: dict[str, Any] | None = None
    kind: audit.Kind = Field(default="call", description="What it is a record of; absent for a call.")
    by: str | None = Field(default=None, description="Who did it, where it is no call.")
    details: dict[str, Any] | None = Field(default=None, description="What was done, where it is no call.")
    approval: UsedApproval | None = Field(default=None, description="The approval that the call used.")
    arguments_hash: str | None = Field(default=None, description="The SHA-256 of what is kept of the arguments.")
    result_hash: str | None = Field(default=None, description="The SHA-256 of what is kept of the result.")
    request: str | None = Field(
        default=None, description="In the record of a call that began: a fingerprint of agent, tool and arguments."
    )
    lost: dict[str, Any] | None = Field(
        default=None, description="In audit.broken: the number and hash of the record that the log had gone on to."
    )
    previous: str
    hash: str
    seal: str | None = Field(default=None, description="Made of the hash with the key of the machine.")
    arguments: Any = Field(
        default=None,
        description="What the call was given: scrubbed, and {cut, bytes, text} where it is large. Absent where it is "
        "not recorded, or gone to make room; records from before have a fingerprint here.",
    )
    result: Any = Field(default=None, description="What came back, in the same way.")


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage(Answer):
    """Some records of the audit log, in the order asked for."""

    items: list[SerializeAsAny[AuditRecord]]
    next: Annotated[
        int | None, Field(description="The after (or before, newest first) of the next page; null at the end.")
    ]

    @classmethod
    def of(cls, page: audit.AuditPage) -> AuditPage:
        """The records exactly as the log holds them, since a hash binds each: they are not read again."""
        return cls(items=cast(list[AuditRecord], page.records), next=page.next)


@dataclass(frozen=True, kw_only=True, slots=True)
class Breach(Answer):
    """Where the chain of records does not hold."""

    number: Annotated[int, Field(description="How many records hold before it.")]
    problem: str
    file: Annotated[str, Field(description="The copy that does not hold; empty for the log itself.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Break(Answer):
    """A marked gap: the log was put back to an older state, and goes on behind what it had held."""

    number: Annotated[int, Field(description="The record that marks it.")]
    after: Annotated[int, Field(description="The last record before it that is there.")]
    lost: Annotated[int, Field(description="The last record that there had been.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification(Answer):
    """Whether the log is as it was written, and what could not be checked."""

    whole: bool
    breach: Breach | None
    first: int | None
    last: int | None
    removed: Annotated[
        int, Field(description="The last record that retention took away, or that is in an earlier part of the file.")
    ]
    sealed_from: Annotated[
        int | None, Field(description="The first record with a seal of this machine's key, which covers those before.")
    ]
    breaks: list[Break]
    unchecked: list[str]

    @classmethod
    def of(cls, proof: audit.Proof) -> Verification:
        """What a look at the whole chain of records found."""
        breach = proof.breach
        return cls(
            whole=breach is None,
            breach=None if breach is None else Breach(**asdict(breach)),
            first=proof.first,
            last=proof.last,
            removed=proof.removed,
            sealed_from=proof.sealed_from,
            breaks=[Break(**asdict(one)) for one in proof.breaks],
            unchecked=list(proof.unchecked),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(Answer):
    """What was decided about a tool, and by which rule."""

    verdict: receipt.Standing
    rule: str
    source: str
    ancestor: Annotated[str | None, Field(description="The agent above a sub-agent that took it away.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt(Answer):
    """Why an agent has each tool of the pool, or has not; to the agent itself, only what it has or its role takes."""

    agent: str
    depth: int
    chain: Annotated[list[str], Field(description="The agents above it, the outermost first, and itself.")]
    revision: int
    hash: str
    tools: dict[str, Verdict]
    sources: dict[str, Source]
    rejected: list[RejectedTool]
    warnings: list[str]

    @classmethod
    def of(cls, given: receipt.Receipt) -> Receipt:
        """An agent's receipt, tools and sources by name."""
        return cls(
            agent=given.agent,
            depth=given.depth,
            chain=list(given.chain),
            revision=given.revision,
            hash=given.hash,
            tools={name: Verdict(**verdict._asdict()) for name, verdict in sorted(given.items())},
            sources={name: Source.of(found) for name, found in sorted(given.sources.items())},
            rejected=[RejectedTool.of(one) for one in given.rejected],
            warnings=list(given.warnings),
        )


class OpenAiFunction(BaseModel):
    """A function as OpenAI-style APIs take it."""

    model_config = _CAMEL

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None


class OpenAiTool(BaseModel):
    """A tool as OpenAI-style APIs take it."""

    model_config = _CAMEL

    type: Literal["function"]
    function: OpenAiFunction


class RunCall(Body):
    """A tool and its arguments, as one step of a run."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Run(Body):
    """Calls, made one after the other."""

    calls: list[RunCall] = Field(max_length=MAX_CALLS)
