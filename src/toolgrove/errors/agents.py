"""Tools and agents that do not exist, that may not be started, or that did not finish."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolgrove.errors.kinds import Forbidden, GroveError, NotFound
from toolgrove.errors.wording import did_you_mean


class ToolNotFound(NotFound):
    """The agent has no tool of that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"There is no tool {name!r}.{did_you_mean(name, known)}", tool=name)


class PartNotGranted(Forbidden):
    """A call stands for several, one of them to a tool that the agent does not have."""

    def __init__(self, *, tool: str, index: int) -> None:
        super().__init__(
            f"changes[{index}] needs the tool {tool!r}, which you do not have. Nothing was changed. Leave such "
            "changes out.",
            reason="not_granted",
            tool=tool,
            index=index,
        )


class AgentNotFound(NotFound):
    """The project defines no agent of that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        others = f"; agents: {', '.join(known)}.{did_you_mean(name, known)}" if known else " here."
        super().__init__(f"No agent {name!r} is defined{others}", agent=name)


class SpawnBudgetSpent(Forbidden):
    """A run, with all that it spawned, asks for more sub-agents than it may start."""

    def __init__(self, *, asked: int, remaining: int, limit: int) -> None:
        advice = f"Ask for at most {remaining}" if remaining else "Finish the work with your own tools; do not retry"
        super().__init__(
            f"{asked} more sub-agents would exceed the limit of {limit} for a run and all its sub-agents. {advice}.",
            reason="spawn_budget",
            remaining=remaining,
            limit=limit,
        )


class RunnerMissing(GroveError):
    """No model can drive an agent here; says what the operator has to add."""

    code = "internal"

    def __init__(self, *, problem: str, remedy: str) -> None:
        super().__init__(
            f"No model can drive an agent here: {problem}. The operator {remedy}. Until then, call the tools yourself.",
            reason="no_runner",
        )


class TooManyRuns(GroveError):
    """As many runs with a model are under way as there may be."""

    code = "rate_limited"
    retryable = True

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            f"{limit} model runs are in progress, which is the limit. Wait until one ends.", reason="runs", limit=limit
        )


class RunFailed(GroveError):
    """An agent's run ended without an answer; `reason` says where it broke."""

    code = "internal"

    def __init__(self, message: str, *, reason: str, retryable: bool = False, **facts: Any) -> None:
        super().__init__(message, reason=reason, **facts)
        self.retryable = retryable
