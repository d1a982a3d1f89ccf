"""The coordination tools: an agent hands tasks to others and gets their answers side by side."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

import anyio

from toolgrove.errors import GroveError, RunFailed, RunnerMissing, SpawnBudgetSpent
from toolgrove.events import ToolFailed
from toolgrove.types import Annotations, Call, Clock, Result, Schema, Tool, ToolSpec

SOURCE = "coordination"
log = logging.getLogger("toolgrove.pool")
PER_CALL = 16
AT_ONCE = 4
PER_RUN = 64
"""The most sub-agents of a run with a model, or of a root agent's call, with all that follows from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AvailableAgent:
    """An agent that may be spawned, and how many tools it would have."""

    name: str
    description: str
    tools: int


Spawn = Callable[[Call, int, str, str], Awaitable[Result]]
Scrub = Callable[[Any], Any]
Available = Callable[[Call], Awaitable[Sequence[AvailableAgent]]]


class _Budget:
    """What a run may still spawn; shared by all that it spawned."""

    def __init__(self, limit: int) -> None:
        self._limit = self._remaining = limit

    def take(self, count: int) -> None:
        """Count sub-agents that are about to start, all or none."""
        if count > self._remaining:
            raise SpawnBudgetSpent(asked=count, remaining=self._remaining, limit=self._limit)
        self._remaining -= count


# A sub-agent's own calls run in tasks of the call that spawned it, so they find its budget here.
_budget: ContextVar[_Budget] = ContextVar("toolgrove_spawn_budget")


@contextmanager
def spawn_budget() -> Iterator[None]:
    """Have all that a run spawns share one budget, however many calls it makes."""
    mark = _budget.set(_Budget(PER_RUN))
    try:
        yield
    finally:
        _budget.reset(mark)


def no_runner() -> RunnerMissing:
    """The refusal where the project names none."""
    return RunnerMissing(
        problem="this project has no runner",
        remedy="adds one to the project's file, such as runner: {kind: openai, url: …, model: …}, "
        "or hands one to Grove(config, runner=…)",
    )


class CoordinationSource:
    """Runs sub-agents side by side.

    `spawn(call, number, agent, input)` answers `{"output": …}` or raises a GroveError, also for an agent that does not
    exist, or that the caller may not start; `number` counts the agents of the call. Without it the tools are there all
    the same, and say what is missing.
    """

    name = SOURCE

    def __init__(self, clock: Clock, *, available: Available, spawn: Spawn | None, scrub: Scrub) -> None:
        self._clock = clock
        self._scrub = scrub
        self._available = available
        self.spawn = spawn
        self._tools = tuple(Tool(spec=spec, source=self, mutates=False, own_name=spec.name) for spec in SPECS)

    def tools(self) -> Sequence[Tool]:
        """Both coordination tools; what a sub-agent changes is a matter of its own role."""
        return self._tools

    async def call(self, call: Call) -> Result:
        """Run a call that the chain let through."""
        if call.name == _LIST_AVAILABLE_AGENTS.name:
            return {"agents": [asdict(agent) for agent in await self._available(call)]}
        return await self._run_all(call)

    async def _run_all(self, call: Call) -> Result:
        spawn = self.spawn
        if spawn is None:
            raise no_runner()
        wanted = call.arguments["agents"]
        budget = _budget.get(None) or _Budget(PER_RUN)
        budget.take(len(wanted))
        results: list[Result] = [{}] * len(wanted)
        progress = _Progress(call, len(wanted))
        slots = anyio.Semaphore(AT_ONCE)

        async def run(index: int, agent: str, task: str) -> None:
            async with slots:
                try:
                    results[index] = {"agent": agent, "output": await _output(spawn, call, index + 1, agent, task)}
                except GroveError as error:
                    results[index] = {"agent": agent, **error.to_json()}
                    self._tell(call, index + 1, agent, error)
            await progress.one_done()

        mark = _budget.set(budget)
        try:
            async with anyio.create_task_group() as tasks:
                for index, one in enumerate(wanted):
                    tasks.start_soon(run, index, one["agent"], one["input"])
        finally:
            _budget.reset(mark)
        return {"results": results}

    def _tell(self, call: Call, number: int, agent: str, error: GroveError) -> None:
        """Whoever follows the run hears of a sub-agent that did not come to an answer."""
        if call.publish is None:
            return
        caller = call.caller
        call.publish(
            ToolFailed(
                call_id=f"{call.id}.{number}",
                tool=call.name,
                chain=(*caller.chain, agent),
                run_id=call.run_id,
                parent_call_id=call.id,
                error=self._scrub({**error.to_json()["error"], "retryable": error.retryable}),
                timestamp=self._clock.wall(),
            )
        )


async def _output(spawn: Spawn, call: Call, number: int, agent: str, task: str) -> Any:
    """The answer of one sub-agent; a GroveError says what it failed with."""
    try:
        return (await spawn(call, number, agent, task))["output"]
    except GroveError:
        raise
    except Exception:
        log.exception("call %s of %s: sub-agent %s failed", call.id, call.caller.agent, agent)
        raise RunFailed(
            f"The run of {agent!r} failed on our side. Report call {call.id!r} to the operator.",
            reason="runner_failed",
            callId=call.id,
        ) from None


class _Progress:
    """Tells the waiting client how many sub-agents have ended."""

    def __init__(self, call: Call, total: int) -> None:
        self._client, self._total, self._done = call.client, total, 0

    async def one_done(self) -> None:
        self._done += 1
        if self._client is not None:
            await self._client.progress(self._done, self._total, f"{self._done} of {self._total} done")


def _record(properties: dict[str, Any], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TASK = _record(
    {
        "agent": {"type": "string", "maxLength": 64, "description": "A name from list_available_agents."},
        "input": {
            "type": "string",
            "minLength": 1,
            "description": "The whole task: a sub-agent sees nothing of this conversation.",
        },
    },
    "agent",
    "input",
)
_SPAWN_AGENTS = ToolSpec(
    name="spawn_agents",
    description=(
        "Hand tasks to other agents, which work side by side with tools of their own, and wait for all. Results come "
        "in the order asked, each with 'output' or 'error'; one that fails stops no other."
    ),
    input_schema=_record(
        {
            "agents": {
                "type": "array",
                "items": _TASK,
                "minItems": 1,
                "maxItems": PER_CALL,
                "description": "One entry per sub-agent; an agent may be named more than once.",
            }
        },
        "agents",
    ),
    output_schema=_record({"results": {"type": "array", "items": {"type": "object"}}}, "results"),
    annotations=Annotations(readonly=False, idempotent=False, open_world=True),  # a sub-agent may well destroy
    source=SOURCE,
)


_LIST_AVAILABLE_AGENTS = ToolSpec(
    name="list_available_agents",
    description="List the agents that spawn_agents can start from here, what each is for and how many tools it has.",
    input_schema=_record({}),
    output_schema=_record(
        {
            "agents": {
                "type": "array",
                "items": _record(
                    {
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                        "tools": {"type": "integer", "minimum": 0},
                    },
                    "name",
                    "description",
                    "tools",
                ),
            }
        },
        "agents",
    ),
    annotations=Annotations(readonly=True, destructive=False, idempotent=True, open_world=False),
    source=SOURCE,
)
SPECS = (_SPAWN_AGENTS, _LIST_AVAILABLE_AGENTS)
