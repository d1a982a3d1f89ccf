"""The pool: sources, their tools, and those that were turned down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolgrove.pool import offer, snapshot
from toolgrove.types import Kind
from toolgrove.web.schemas.json_object import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Source(Answer):
    """Where tools come from: an MCP server, HTTP tools, or extensions."""

    name: str
    kind: Kind
    tools: int
    problem: Annotated[str, Field(description="Empty while it is up.")]
    notice: Annotated[str, Field(description="What you should do though it is up, such as a login with more rights.")]
    takes_login: Annotated[
        bool, Field(description="Whether a person can log in to it, with POST /api/logins/{server}.")
    ]

    @classmethod
    def of(cls, found: snapshot.SourceState) -> Source:
        """How a source of the pool stands."""
        return cls(
            name=found.name,
            kind=found.kind,
            tools=found.tools,
            problem=found.problem,
            notice=found.notice,
            takes_login=found.takes_login,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOverview(Source):
    """A source as the operator sees it."""

    instructions: Annotated[
        str, Field(description="How the server says that it wants to be used. No agent is told; judge it yourself.")
    ]

    @classmethod
    def of(cls, found: snapshot.SourceState) -> SourceOverview:
        """How a source of the pool stands, and what it says of itself."""
        return cls(
            name=found.name,
            kind=found.kind,
            tools=found.tools,
            problem=found.problem,
            notice=found.notice,
            takes_login=found.takes_login,
            instructions=found.instructions,
        )


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
