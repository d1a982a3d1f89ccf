"""What an agent asks for: its receipt, its tools for OpenAI-style APIs, and a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolgrove import types
from toolgrove.pool import receipt
from toolgrove.web.schemas.json_object import CAMEL, Answer, Body
from toolgrove.web.schemas.pool import RejectedTool, Source

MAX_CALLS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(Answer):
    """What was decided about a tool, and by which rule."""

    verdict: receipt.Standing
    rule: str
    source: str
    ancestor: Annotated[str | None, Field(description="The agent above a sub-agent that took it away.")]
    approval: Annotated[
        str | None, Field(description="The rule by which a person approves each call; null where nobody has to.")
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TokensEstimate(Answer):
    """About how many tokens the agent's list of tools costs a model: characters / 4."""

    total: int
    budget: Annotated[int, Field(description="The agent's toolBudget.")]
    tools: Annotated[dict[str, int], Field(description="Of each tool that is listed.")]
    sources: Annotated[dict[str, int], Field(description="Of all listed tools of a source.")]

    @classmethod
    def of(cls, cost: receipt.ListCost) -> TokensEstimate:
        """The cost of a list."""
        return cls(total=cost.total, budget=cost.budget, tools=dict(cost.tools), sources=dict(cost.sources))


@dataclass(frozen=True, kw_only=True, slots=True)
class Offered(Answer):
    """A resource, a template of resources or a prompt that an agent has."""

    kind: Literal["resource", "template", "prompt"]
    address: Annotated[str, Field(description="Its URI, its template, or the name of the prompt.")]
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt(Answer):
    """Why an agent has each tool of the pool, or does not; to the agent itself, only what it has or its role takes."""

    agent: str
    depth: int
    chain: Annotated[list[str], Field(description="The agents above it, the outermost first, and itself.")]
    revision: int
    hash: str
    tools: dict[str, Verdict]
    sources: dict[str, Source]
    rejected: list[RejectedTool]
    warnings: list[str]
    tokens_estimate: TokensEstimate
    offered: Annotated[list[Offered], Field(description="What it can read and ask for beside tools.")]

    @classmethod
    def of(
        cls, given: receipt.Receipt, offered: Sequence[types.Offered] = (), approvals: Mapping[str, str] | None = None
    ) -> Receipt:
        """An agent's receipt, tools and sources by name; `approvals` are the rules by which a person is asked."""
        asks = approvals or {}
        return cls(
            agent=given.agent,
            depth=given.depth,
            chain=list(given.chain),
            revision=given.revision,
            hash=given.hash,
            tools={
                name: Verdict(**verdict._asdict(), approval=asks.get(name)) for name, verdict in sorted(given.items())
            },
            sources={name: Source.of(found) for name, found in sorted(given.sources.items())},
            rejected=[RejectedTool.of(one) for one in given.rejected],
            warnings=list(given.warnings),
            tokens_estimate=TokensEstimate.of(given.cost),
            offered=[Offered(**one._asdict()) for one in offered],
        )


class OpenAiFunction(BaseModel):
    """A function as OpenAI-style APIs take it."""

    model_config = CAMEL

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None


class OpenAiTool(BaseModel):
    """A tool as OpenAI-style APIs take it."""

    model_config = CAMEL

    type: Literal["function"]
    function: OpenAiFunction


class RunCall(Body):
    """A tool and its arguments, as one step of a run."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Run(Body):
    """Either calls, made one after the other, or a task for the agent's model."""

    calls: list[RunCall] | None = Field(default=None, max_length=MAX_CALLS)
    input: str | None = Field(default=None, min_length=1, description="The task, in words.")
