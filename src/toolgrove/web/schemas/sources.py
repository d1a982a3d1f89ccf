"""Sources as the operator looks at them: how each stands, its tools, who has them and how they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from toolgrove.pool import offer
from toolgrove.types import Kind
from toolgrove.web.schemas.json_object import Answer
from toolgrove.web.schemas.pins import Pin


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures(Answer):
    """Calls since the gateway started; those that wait for a person are among none of the failures."""

    calls: int
    failures: Annotated[int, Field(description="Calls that were let through and failed.")]
    refusals: Annotated[int, Field(description="Calls that were not let through: not allowed, or too many.")]
    median_ms: Annotated[float | None, Field(description="The middle one of the latest calls; null without one.")]
    slow_ms: Annotated[float | None, Field(description="Nineteen of twenty of the latest calls took less.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceStatus(Answer):
    """Where tools come from, and how that stands."""

    name: str
    kind: Kind
    state: Literal["up", "down", "disabled"]
    problem: Annotated[str, Field(description="Why it is down; empty otherwise.")]
    notice: Annotated[str, Field(description="What you should do though it is up, such as a login with more rights.")]
    takes_login: bool
    instructions: Annotated[
        str, Field(description="How the server says that it wants to be used. No agent is told; judge it yourself.")
    ]
    where: Annotated[
        str, Field(description="Its command, address or folder, without values of secrets; empty for what is built in.")
    ]
    last_words: Annotated[list[str], Field(description="The last lines of its error output, without secrets.")]
    restarts: Annotated[bool, Field(description="Whether POST …/restart starts or asks it again.")]
    tools: int
    waiting: Annotated[int, Field(description="Definitions that wait for a person.")]
    figures: Figures


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceList(Answer):
    """All sources, the built-in ones last."""

    items: list[SourceStatus]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTool(Answer):
    """A tool of a source: what it is, how it does, and who has it."""

    name: str
    own_name: str
    standing: offer.Standing
    reason: str
    description: str
    changes: Annotated[bool | None, Field(description="Whether it changes something; null while it is not offered.")]
    approval: Annotated[str | None, Field(description="The rule of the source by which each call is approved.")]
    tokens: Annotated[int | None, Field(description="About what it costs in a list: characters / 4.")]
    definition: Annotated[
        dict[str, Any] | None, Field(description="As tools/list shows it; what waits, where nothing was accepted.")
    ]
    pin: Annotated[Pin | None, Field(description="What was accepted of an MCP server's definition, and what waits.")]
    figures: Figures
    access: Annotated[
        dict[str, str], Field(description="By agent: a verdict of its receipt, or asks if a person approves each call.")
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceAgent(Answer):
    """What an agent has of a source."""

    name: str
    tools: int
    tokens: Annotated[int, Field(description="About what these tools cost in its list: characters / 4.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceView(Answer):
    """A source with its tools."""

    source: SourceStatus
    agents: list[SourceAgent]
    tools: list[SourceTool]
