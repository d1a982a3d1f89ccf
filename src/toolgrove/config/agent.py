"""The section of an agent: which tools it is given, what it may do with them, how often."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from toolgrove.config.answers import AnswersConfig
from toolgrove.config.fields import Name, ResourcePattern
from toolgrove.config.record import Record
from toolgrove.config.results import LargeResults
from toolgrove.config.section import Section
from toolgrove.notation.rate import read_rate
from toolgrove.types import Concurrency, Role

Expose = Literal["list", "search", "auto"]
"""Whether an agent is shown all its tools, or few and a way to find the others; `auto` decides by their size."""


class McpSelection(Section):
    """A server that an agent selects, less the tools that are hidden from it."""

    mask: tuple[str, ...] = Field(default=(), description="Tools to hide, by the server's own names; globs allowed.")


class AgentConfig(Section):
    """An agent: which tools it is given, and what it may do with them."""

    description: str = Field(default="", description="What the agent is for; other agents read it.")
    role: Role = Field(default="reader", description="A reader has no tool that changes something.")
    tools: tuple[str, ...] = Field(
        default=(),
        description="Patterns of the tools it is given: exact names, globs, `*`, toolsets such as `@read`. "
        "Absent: none.",
    )
    deny: tuple[str, ...] = Field(default=(), description="Patterns that it never gets; beats everything.")
    mcp: dict[str, McpSelection] | None = Field(
        default=None, description="The MCP servers it selects. Absent: all; `{}`: none."
    )
    expose: Expose | None = Field(default=None, description="How its tools are shown; else as the project says.")
    tool_budget: int | None = Field(
        default=None, ge=1, description="The tokens that its list may cost; else as the project says."
    )
    always: tuple[str, ...] | None = Field(
        default=None, description="Patterns of tools that are listed in search as well; else as the project says."
    )
    list_output_schemas: bool = Field(
        default=True, description="Whether its list has the tools' output schemas; without them it is much shorter."
    )
    results: LargeResults | None = Field(
        default=None, description="How large its results may be; else as the project says."
    )
    list_page: int | None = Field(
        default=None,
        ge=1,
        description="How many tools `tools/list` gives at a time. Absent: all, since not every client asks for more.",
    )
    resources: tuple[ResourcePattern, ...] = Field(
        default=(),
        description="Patterns of the resources of MCP servers that it may read, each `<server>:<glob of URIs>`. "
        "Absent: none.",
    )
    prompts: tuple[str, ...] = Field(
        default=(),
        description="Patterns of the prompts of MCP servers that it is given, named `<server>_<prompt>`. Absent: none.",
    )
    approve: tuple[str, ...] = Field(default=(), description="Patterns of tools whose every call a person approves.")
    ask_client: bool = Field(
        default=False, description="Whether the person at the agent's own MCP client may approve, by elicitation."
    )
    apps: bool = Field(
        default=False,
        description="Whether it gets the tools that only the pages of MCP Apps call (`_meta.ui.visibility`); for "
        "agents whose client shows such pages and keeps those tools from the model.",
    )
    rate_limit: str | None = Field(default=None, description="How often it may call, such as `60/minute`.")
    read_only: bool = Field(default=False, description="Remove every tool that changes something, whatever the role.")
    write_root: str | None = Field(default=None, description="The node of the tree below which it may write.")
    concurrency: Concurrency | None = Field(default=None, description="Its version checks; else the workspace's.")
    max_depth: int = Field(
        default=2, ge=0, le=16, description="Depth from which it cannot spawn sub-agents, whatever `tools` says."
    )
    record: Record | None = Field(
        default=None,
        description="What the audit log keeps of its calls; where it says nothing, the project's `record`.",
    )
    prompt: str = Field(default="", description="What its model reads before every task, if a model drives it.")
    model: str | None = Field(default=None, min_length=1, description="Its model; else the runner's.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="How freely its model answers.")
    max_turns: int | None = Field(
        default=None,
        ge=1,
        le=1_000,
        description="Answers of its model before a run is stopped; else `runner.maxSteps`.",
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, description="The longest answer of its model; else the runner's."
    )
    deadline: float | None = Field(
        default=None, gt=0, description="Seconds that a run of it may take in all; else the runner's."
    )
    answers: AnswersConfig | None = Field(
        default=None, description="How long answers of the built-in tools may be; else the project's `answers`."
    )
    may_delegate: tuple[str, ...] = Field(
        default=(),
        description="Patterns of tools that its sub-agents may have even if it does not. It lends the name alone: its "
        "role, write root, approvals and limits bind those calls too.",
    )
    may_spawn: tuple[Name, ...] | None = Field(
        default=None,
        description="The agents that it, and those below it, may spawn. Absent: every other one; itself only where "
        "listed.",
    )

    @field_validator("rate_limit")
    @classmethod
    def _readable(cls, notation: str | None) -> str | None:
        if notation is not None and read_rate(notation).amount < 1:
            raise ValueError(f"{notation!r} never lets a call through; readOnly or deny takes tools away")
        return notation

    def selections(self) -> dict[str, tuple[str, ...]]:
        """The patterns that may name toolsets, each by its key."""
        named = {"tools": self.tools, "deny": self.deny, "approve": self.approve, "mayDelegate": self.may_delegate}
        return named if self.always is None else {**named, "always": self.always}
