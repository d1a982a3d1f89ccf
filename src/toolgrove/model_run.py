"""A run with a model: an agent works on a task, and whoever asked follows what happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from toolgrove.agent import Agent
from toolgrove.call.run_events import RunEvents
from toolgrove.errors import MESSAGE, GroveError, RunFailed, TooManyRuns, brief
from toolgrove.events import RunFinished
from toolgrove.notation.half_characters import refuse_half
from toolgrove.pool.coordination import spawn_budget
from toolgrove.types import Clock, Result

log = logging.getLogger("toolgrove.runners")
Drive = Callable[[Agent, str], Awaitable[Result]]


class AtOnce:
    """How many runs may be under way: each of them costs somebody money."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0

    def check(self) -> None:
        """Refuse one more where there is no room."""
        if self._running >= self._limit:
            raise TooManyRuns(limit=self._limit)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a run while it lasts."""
        self.check()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1


class ModelRun:
    """One run; `drive` has the agent's model work on a task, and answers `{"output": …}` or raises a GroveError."""

    def __init__(self, agent: Agent, run_id: str, drive: Drive, clock: Clock, at_once: AtOnce) -> None:
        at_once.check()
        self._events = RunEvents((agent.name,))
        self._agent = agent.in_run(run_id, self._events.publish)
        self._run_id = run_id
        self._drive = drive
        self._clock = clock
        self._at_once = at_once

    async def events(self, task: str) -> AsyncGenerator[dict[str, Any], None]:
        """What happens until `run_finished`, which always comes last; whoever stops reading ends the run."""
        begun = self._clock.monotonic()
        with self._at_once.one_more():
            work = asyncio.ensure_future(self._work(task))
            work.add_done_callback(self._events.wake)
            try:
                while (event := await self._events.next(work)) is not None:
                    yield event
                ended = work.result()
            finally:
                work.cancel()
        yield self._finished(ended, self._clock.monotonic() - begun).to_json()

    async def _work(self, task: str) -> str | GroveError:
        try:
            refuse_half(task, "task")
            with spawn_budget():
                return str((await self._drive(self._agent, task))["output"])
        except GroveError as error:
            return error
        except Exception:
            log.exception("run %s of %s failed", self._run_id, self._agent.name)
            return RunFailed(
                f"The run of {self._agent.name!r} failed on our side. Report run {self._run_id!r} to the operator.",
                reason="runner_failed",
            )

    def _finished(self, ended: str | GroveError, seconds: float) -> RunFinished:
        agent, events = self._agent, self._events
        error = ended if isinstance(ended, GroveError) else None
        return RunFinished(
            chain=(agent.name,),
            run_id=self._run_id,
            receipt=agent.receipt.hash,
            outcome="success" if error is None else "failure",
            output=ended if isinstance(ended, str) else None,
            error=None if error is None else {**error.to_json()["error"], "retryable": error.retryable},
            succeeded=events.own["succeeded"],
            failed=events.own["failed"],
            delegated=events.delegated,
            tool_calls=sum(events.own.values()) + sum(events.delegated.values()),
            usage=events.usage,
            seconds=round(seconds, 3),
            timestamp=self._clock.wall(),
        )


async def in_time(agent: Agent, work: Awaitable[Result]) -> Result:
    """What the work gives within the deadline of the agent that it is done for, without secrets that its model saw."""
    seconds = agent.settings.deadline
    try:
        with anyio.move_on_after(seconds):
            result = await work
            return {**result, "output": agent.cleaned(str(result["output"]))}
    except GroveError as error:
        error.message = brief(agent.cleaned(error.message), MESSAGE)
        error.args = (error.message,)
        raise
    finally:
        agent.heard_out()
    raise RunFailed(
        f"{agent.name!r} did not finish within its {seconds:g} s; what it has done until then stays done. "
        "Give it a smaller task; the operator can raise its deadline.",
        reason="deadline",
    )
