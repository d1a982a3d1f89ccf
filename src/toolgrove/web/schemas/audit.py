"""The audit log: its records, a page of them, and what a check of the whole found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, SerializeAsAny

from toolgrove.store import audit
from toolgrove.web.schemas.json_object import CAMEL, Answer


class UsedApproval(BaseModel):
    """An approval that a call used up."""

    model_config = CAMEL

    id: str
    by: str = Field(description="Who gave it.")


class AuditRecord(BaseModel):
    """One call in the audit log, bound to the record before it."""

    model_config = CAMEL

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
    commit: str | None = Field(default=None, description="The change of the tree that the call made: its version.")
    request: str | None = Field(
        default=None, description="In the record of a call that began: a fingerprint of agent, tool and arguments."
    )
    lost: dict[str, Any] | None = Field(
        default=None, description="In audit.broken: the number and hash of the record that the log had gone on to."
    )
    previous: str
    hash: str
    seal: str | None = Field(
        default=None,
        description="An Ed25519 signature in hexadecimal. It covers the records before it as well, so not each has "
        "one. 32 digits are a seal of before, which only the key itself can check.",
    )
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
class Difference(Answer):
    """Something that does not fit a replay of the journal."""

    what: Annotated[str, Field(description="A node, a change, an entry, a replica or the store.")]
    name: Annotated[str, Field(description="Which of them.")]
    problem: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCheck(Answer):
    """What a replay of the journal says of the stored tree, and of those that are served."""

    whole: Annotated[bool | None, Field(description="Null where something that is kept could not be looked at.")]
    changes: Annotated[int, Field(description="How many changes were replayed.")]
    served: Annotated[int, Field(description="How many processes said which tree they serve.")]
    differs: Annotated[list[Difference], Field(description="What does not fit, the first 50.")]
    unchecked: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification(Answer):
    """Whether the log is as it was written, and what could not be checked."""

    whole: Annotated[
        bool | None,
        Field(
            description="Null where it is not proved: nothing is broken, but no seal that can be checked covers all. "
            "With deep, also what the tree is."
        ),
    ]
    breach: Breach | None
    first: int | None
    last: int | None
    removed: Annotated[
        int, Field(description="The last record that retention took away, or that is in an earlier part of the file.")
    ]
    sealed_from: Annotated[
        int | None, Field(description="The first record that seals of this project's key cover; null where none does.")
    ]
    sealed_to: Annotated[int | None, Field(description="The last record with such a seal.")]
    sealed: Annotated[bool, Field(description="Whether seals of this project's key cover all of the log.")]
    breaks: list[Break]
    unchecked: list[str]
    tree: Annotated[TreeCheck | None, Field(description="Null unless deep is asked for.")]

    @classmethod
    def of(cls, proof: audit.Proof) -> Verification:
        """What a look at the whole chain of records found."""
        breach = proof.breach
        return cls(
            whole=proof.whole,
            breach=None if breach is None else Breach(**asdict(breach)),
            first=proof.first,
            last=proof.last,
            removed=proof.removed,
            sealed_from=proof.sealed_from,
            sealed_to=proof.sealed_to,
            sealed=proof.is_proved,
            breaks=[Break(**asdict(one)) for one in proof.breaks],
            unchecked=list(proof.unchecked),
            tree=None if proof.tree is None else _tree(proof.tree),
        )


def _tree(tree: audit.TreeProof) -> TreeCheck:
    return TreeCheck(
        whole=False if tree.differs else True if tree.is_proved else None,
        changes=tree.changes,
        served=tree.served,
        differs=[Difference(**asdict(one)) for one in tree.differs],
        unchecked=list(tree.unchecked),
    )
