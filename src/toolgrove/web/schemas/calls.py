"""A call with all that is known about it, and a run with all that happened in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from toolgrove.tree.account import Account
from toolgrove.web.schemas.agents import Verdict
from toolgrove.web.schemas.approvals import Approval
from toolgrove.web.schemas.audit import AuditRecord
from toolgrove.web.schemas.json_object import Answer

MOST = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChange(Answer):
    """What a call changed in the tree: every node as it was and as it became."""

    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    moved: list[dict[str, Any]]
    reordered: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    names: Annotated[dict[str, str], Field(description="What the nodes in it are called, by their ids.")]
    left_out: Annotated[int, Field(description="How many more nodes it changed.")]

    @classmethod
    def of(cls, account: Account, scrub: Callable[[Any], Any]) -> TreeChange:
        """The difference that a call made; of very many nodes the first."""
        lists = account.diff.to_json()
        shown = {kind: entries[:MOST] for kind, entries in lists.items()}
        left_out = sum(map(len, lists.values())) - sum(map(len, shown.values()))
        names = account.names if left_out == 0 else _some(account.names, shown)
        return cls(**scrub(shown), names=scrub(names), left_out=left_out)


def _some(names: dict[str, str], shown: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    told = {value for entries in shown.values() for entry in entries for value in entry.values() if type(value) is str}
    return {key: name for key, name in names.items() if key in told}


@dataclass(frozen=True, kw_only=True, slots=True)
class Access(Answer):
    """Why the agent does or does not have the tool, by the project as it is now."""

    verdict: Verdict
    approval: Annotated[str | None, Field(description="The rule by which its calls need a person; null if none.")]
    same: Annotated[bool, Field(description="Whether the agent had just these tools when it made the call.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Answer):
    """A call: what was asked, what came of it, who agreed, and what it did to the tree."""

    record: SerializeAsAny[AuditRecord]
    begun: Annotated[bool, Field(description="Whether it is still under way, or was cut off.")]
    approval: Annotated[Approval | None, Field(description="The approval that it used, or waits for.")]
    change: Annotated[
        TreeChange | None, Field(description="What it changed in the tree, as far as the history reaches back.")
    ]
    access: Access | None
    delegated: Annotated[
        list[SerializeAsAny[AuditRecord]], Field(description="The calls of agents that worked for it, oldest first.")
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary(Answer):
    """A run that was asked for over HTTP."""

    id: str
    agent: str
    kind: Annotated[Literal["model", "calls"], Field(description="Whether a model works, or calls were given.")]
    started_at: float
    state: Annotated[Literal["running", "success", "failure", "ended"], Field(description="Ended: nobody heard how.")]
    calls: Annotated[int, Field(description="How many calls have ended so far, those of sub-agents too.")]
    seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunList(Answer):
    """The latest runs, the newest first."""

    items: list[RunSummary]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStory(Answer):
    """A run and its events, without results: those are with the calls."""

    id: str
    agent: str
    state: Literal["running", "success", "failure", "ended"]
    input: Annotated[str | None, Field(description="The task of a model, as far as it is kept.")]
    started_at: float | None
    events: list[dict[str, Any]]
    left_out: Annotated[int, Field(description="How many events there was no room for.")]
    kept: Annotated[
        bool, Field(description="Whether these are the events themselves; else they were made from the audit log.")
    ]
