"""The project at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from toolgrove.config import problems
from toolgrove.store.journal import Trouble
from toolgrove.types import Role
from toolgrove.web.schemas.json_object import Answer
from toolgrove.web.schemas.pool import RejectedTool, SourceOverview

TroubleWord = Literal[Trouble, "stopping"]
"""Why a gateway cannot do all of its work now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Health(Answer):
    """Whether the gateway lives, for whoever restarts it."""

    status: Annotated[Literal["ok", "degraded"], Field(description="Degraded: /ready has the reasons.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready(Answer):
    """Whether the gateway can do its work now, for whoever sends it clients."""

    status: Literal["ready", "unready"]
    troubles: Annotated[
        list[TroubleWord],
        Field(
            description="Another program holds the store's file; its database does not answer; this replica has not "
            "caught up with it; what stood here is not in its history, and is read again; its disk refuses; its files, "
            "or those of the state, were deleted, replaced or overwritten; another replica has taken a newer project "
            "file; the shared rate limits do not answer or have lost their counts, so that this replica lets through "
            "its share of them (it stays ready); a newer version of Toolgrove has taken the database over; the gateway "
            "is shutting down."
        ),
    ]
    newer_file: Annotated[
        str | None, Field(description="The SHA-256 of the newest project file taken, where this replica has another.")
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSummary(Answer):
    """What an agent is, and how many tools it has now."""

    name: str
    description: str
    role: Role
    read_only: bool
    tools: int
    tokens_estimate: Annotated[int, Field(description="About what its list costs a model: characters / 4.")]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficMinute(Answer):
    """How many calls a minute had, how they ended and how long they took; the others did what they were asked for."""

    minute: Annotated[int, Field(description="Its first second, in seconds since 1970.")]
    calls: int
    failures: int
    refusals: int
    waiting: Annotated[int, Field(description="Those that ended with a question to a person.")]
    cancelled: Annotated[int, Field(description="Those that were ended before they were done, or cut off.")]
    mean_ms: Annotated[float, Field(description="How long a call took on average.")]
    slowest_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic(Answer):
    """The calls of the last day, minute by minute."""

    minutes: Annotated[list[TrafficMinute], Field(description="Those in which something was called, oldest first.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileProblem(Answer):
    """Something to fix in the project file, which is not in use because of it."""

    line: Annotated[int, Field(description="From 1; 0 where it is not known.")]
    column: int
    path: Annotated[str, Field(description="Where it stands, such as agents.researcher.tools[0].")]
    message: str

    @classmethod
    def of(cls, found: problems.Problem) -> FileProblem:
        """A problem that reading the file again found."""
        return cls(line=found.line, column=found.column, path=found.path, message=found.message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Project(Answer):
    """The project as an overview shows it: sources, agents, traffic and what waits."""

    project: str
    revision: Annotated[int, Field(description="Counts the states of the pool.")]
    sources: list[SourceOverview]
    rejected: list[RejectedTool]
    tools: int
    agents: list[AgentSummary]
    pending_approvals: int
    traffic: Annotated[
        list[TrafficMinute],
        Field(description="The minutes of the last hour in which something was called, oldest first."),
    ]
    healthy: bool
    troubles: Annotated[list[TroubleWord], Field(description="Why it is not healthy, in the words of /ready.")]
    version: Annotated[str, Field(description="Of the gateway itself.")]
    file: Annotated[str | None, Field(description="The name of the project file; null where there is none.")]
    folder: Annotated[str | None, Field(description="The folder that it is in.")]
    tree: Annotated[bool, Field(description="Whether the project has a tree workspace.")]
    configuration: Annotated[
        list[FileProblem],
        Field(description="What is wrong with the project file; the last good one is in use until it is fixed."),
    ]
