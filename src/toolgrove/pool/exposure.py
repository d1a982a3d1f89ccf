"""Which of its tools an agent is shown: all in a list, or few with a way to find the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolgrove.config import AgentConfig, Config, Expose
from toolgrove.types import Tool, ToolSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposure:
    """What an agent and its project say about its list; `read_result` is there where large results are kept."""

    expose: Expose = "list"
    budget: int = 16_000
    always: tuple[str, ...] = ()
    output_schemas: bool = True
    read_result: Tool | None = None

    @classmethod
    def of(cls, config: Config, agent: AgentConfig, read_result: Tool | None = None) -> Exposure:
        """The agent's own words, else the project's."""
        return cls(
            expose=agent.expose or config.expose,
            budget=agent.tool_budget or config.tool_budget,
            always=config.always if agent.always is None else agent.always,
            output_schemas=agent.list_output_schemas,
            read_result=read_result,
        )

    def tokens(self, tools: Mapping[str, Tool]) -> int:
        """An estimate of what a list of these would cost."""
        if self.output_schemas:
            return sum(tool.spec.tokens for tool in tools.values())
        return sum(tool.spec.lean_tokens for tool in tools.values())

    def searches(self, tools: Mapping[str, Tool]) -> str:
        """By which rule an agent with these tools searches; empty where all are listed."""
        if not tools or self.expose == "list":
            return ""
        if self.expose == "search":
            return "expose: search"
        tokens = self.tokens(tools)
        return f"expose: auto, about {tokens:,} tokens are more than {self.budget:,}" if tokens > self.budget else ""

    def shown(self, specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """The tools as the list shows them."""
        return tuple(specs) if self.output_schemas else tuple(map(_without_output, specs))

    def facts(self) -> str:
        """All that a receipt depends on."""
        return repr(replace(self, read_result=None)) + str(self.read_result is not None)


def _without_output(spec: ToolSpec) -> ToolSpec:
    given = spec.as_given
    as_given = None if given is None else {key: value for key, value in given.items() if key != "outputSchema"}
    return replace(spec, output_schema={}, as_given=as_given)
