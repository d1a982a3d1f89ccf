"""What drives an agent: a model in a loop that sees nothing but the agent's own tools."""

from __future__ import annotations

from typing import Any, Protocol

from toolgrove.types import Arguments, Result, ToolSpec


class RunnableAgent(Protocol):
    """An agent as a runner takes it: its tools are fixed, and `call` answers failures instead of raising them."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, name: str, arguments: Arguments | None = None) -> Result: ...

    def openai_tools(self) -> list[dict[str, Any]]: ...


class Runner(Protocol):
    """Runs an agent on a task until its model answers: `{"output": text, "steps": answers of the model}`.

    It raises a GroveError when there is no answer. Every tool call goes through `agent.call`, also one to a tool
    that the agent does not have: the refusal reaches the model, and the audit.
    """

    async def run(self, agent: RunnableAgent, task: str) -> Result: ...


def instructions(agent: RunnableAgent) -> str:
    """What the model is told before its task."""
    about = f" {agent.description.strip()}" if agent.description.strip() else ""
    return (
        f"You are the agent {agent.name!r}.{about} Carry out the task with the tools you were given. "
        "Another agent reads only your last message: put the whole result there."
    )
