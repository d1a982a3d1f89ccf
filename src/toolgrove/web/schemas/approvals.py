"""Approvals, and a person's decision about one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from toolgrove.notation.unseen_text import visible_json
from toolgrove.store import state as project_state
from toolgrove.web.schemas.json_object import Answer, Body


@dataclass(frozen=True, kw_only=True, slots=True)
class OutgoingRequest(Answer):
    """The request of an HTTP tool, with the names of secrets in their place."""

    method: str
    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierCall(Answer):
    """A call whose outcome is unknown, or became known later."""

    call_id: str
    begun_at: str
    became: Annotated[str | None, Field(description="The outcome, if that became known later.")]


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
    asked_by: Annotated[
        str | None, Field(description="operator if the operator asked, acting as the agent; null if the agent did.")
    ]
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
            asked_by=asked.asked_by,
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
