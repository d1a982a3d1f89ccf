"""What drives an agent: a model in a loop that sees nothing but the agent's own tools."""

from __future__ import annotations

from typing import Any, Protocol

from toolgrove.errors import GroveError, RunFailed
from toolgrove.types import Arguments, ModelSettings, Result, ToolSpec


class RunnableAgent(Protocol):
    """An agent as a runner takes it: its tools are fixed, and `call` answers failures instead of raising them.

    `refuse` is for a call that the model asked for and that cannot be made so: it has an event and a record as well.
    `said` and `used` tell whoever follows the run what the model says, and how many tokens it took.
    """

    settings: ModelSettings

    @property
    def name(self) -> str: ...

    @property
    def depth(self) -> int: ...

    @property
    def description(self) -> str: ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, name: str, arguments: Arguments | None = None) -> Result: ...

    async def refuse(self, name: str, why: GroveError) -> Result: ...

    def openai_tools(self) -> list[dict[str, Any]]: ...

    def said(self, text: str) -> None: ...

    def used(self, model: str, *, input: int, output: int) -> None: ...


class Runner(Protocol):
    """Runs an agent on a task until its model answers: `{"output": text, "steps": answers of the model}`.

    It raises a GroveError when there is no answer. Every tool call goes through `agent.call`, also one to a tool
    that the agent does not have: the refusal reaches the model, and the audit.
    """

    async def run(self, agent: RunnableAgent, task: str) -> Result: ...


def instructions(agent: RunnableAgent) -> str:
    """What the model is told before its task."""
    about = f" {agent.description.strip()}" if agent.description.strip() else ""
    reader = "Another agent" if agent.depth else "Whoever asked"
    told = (
        f"You are the agent {agent.name!r}.{about} Carry out the task with the tools you were given. "
        f"{reader} reads only your last message: put the whole result there."
    )
    prompt = agent.settings.prompt.strip()
    return f"{told}\n\n{prompt}" if prompt else told


def stopped(agent: RunnableAgent, steps: int) -> RunFailed:
    """The model asked for tools again and again."""
    return RunFailed(
        f"{agent.name!r} was stopped after {steps} answers of its model, none of them final. "
        "Give it a smaller task; the operator can raise its maxTurns, or runner.maxSteps.",
        reason="max_steps",
        steps=steps,
    )
