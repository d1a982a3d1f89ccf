"""An agent at work: the tools that it was given, and the way to call them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import count
from typing import Any

from toolgrove.call.ending import about, failed, succeeded
from toolgrove.events import RunFinished, ToolFailed, ToolProgress, ToolStarted, ToolSucceeded
from toolgrove.pool.receipt import Receipt
from toolgrove.pool.resolve import Reach, Toolset
from toolgrove.types import Arguments, Call, Caller, Client, Clock, Next, Result, ToolSpec


class Agent:
    """An agent of a project; its tools are fixed from the moment it was resolved."""

    def __init__(
        self, caller: Caller, toolset: Toolset, *, description: str, chain: Next, numbers: count[int], clock: Clock
    ) -> None:
        self.description = description
        self._caller = caller
        self._toolset = toolset
        self._chain = chain
        self._numbers = numbers
        self._clock = clock

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._caller.agent

    @property
    def depth(self) -> int:
        """How deep in a chain of sub-agents it works."""
        return self._caller.depth

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What it sees, which is what it can call."""
        return self._toolset.specs

    @property
    def receipt(self) -> Receipt:
        """Why each tool of the pool is or is not there."""
        return self._toolset.receipt

    @property
    def approvals(self) -> Mapping[str, str]:
        """The tools whose every call a person must approve, and by which rule."""
        return self._toolset.approvals

    @property
    def reach(self) -> Reach:
        """The most that an agent which it spawns can have."""
        return self._toolset.reach

    async def call(self, name: str, arguments: Arguments | None = None, *, client: Client | None = None) -> Result:
        """Call a tool; a failure is an answer with `error`, never an exception."""
        return await self._chain(self.begin(name, arguments, client))

    def begin(self, name: str, arguments: Arguments | None = None, client: Client | None = None) -> Call:
        """A call of this agent, not sent yet."""
        toolset = self._toolset
        return Call(
            id=f"c{next(self._numbers)}",
            name=name,
            tool=toolset.callable.get(name),
            arguments={} if arguments is None else arguments,
            caller=self._caller,
            approval=toolset.approvals.get(name),
            receipt=toolset.receipt.hash,
            ceiling=toolset.reach,
            client=client,
            known=toolset.names,
        )

    def in_session(self, session: str) -> Agent:
        """The same agent with another session's view of the tree."""
        return Agent(
            replace(self._caller, session=session),
            self._toolset,
            description=self.description,
            chain=self._chain,
            numbers=self._numbers,
            clock=self._clock,
        )

    async def send(self, call: Call) -> Result:
        """Send a call that was begun; what it leaves on the call can be read afterwards."""
        return await self._chain(call)

    async def run(self, requests: Iterable[Any]) -> AsyncIterator[dict[str, Any]]:
        """Call tools one after the other, `{"tool": …, "arguments": {…}}` each, and tell what happens.

        A call that fails is an event like any other; the rest goes on, and `run_finished` always comes last.
        """
        successes = failures = 0
        for request in requests:
            told: asyncio.Queue[ToolProgress | None] = asyncio.Queue()
            call = self._requested(request, told)
            yield ToolStarted(**about(call, self._clock.wall()), receipt=call.receipt).to_json()
            work = asyncio.ensure_future(self._chain(call))
            work.add_done_callback(lambda _, told=told: told.put_nowait(None))  # type: ignore[misc]
            try:
                while (event := await told.get()) is not None:
                    yield event.to_json()
                end = self._ended(call, work.result())
            finally:
                work.cancel()
            successes, failures = successes + (call.error is None), failures + (call.error is not None)
            yield end.to_json()
        now = self._clock.wall()
        yield RunFinished(
            agent=self.name, receipt=self.receipt.hash, succeeded=successes, failed=failures, timestamp=now
        ).to_json()

    def _requested(self, request: Any, told: asyncio.Queue[ToolProgress | None]) -> Call:
        form = request if isinstance(request, dict) else {}
        call = self.begin(str(form.get("tool", "")), form.get("arguments"))
        call.client = _Stream(call, self._clock, told)
        return call

    def _ended(self, call: Call, result: Result) -> ToolSucceeded | ToolFailed:
        now = self._clock.wall()
        return succeeded(call, now, result) if call.error is None else failed(call, now)

    def openai_tools(self, *, strict: bool = False, embed_annotations: bool = False) -> list[dict[str, Any]]:
        """The same tools as OpenAI tool definitions."""
        faces = import_module("toolgrove.faces")  # only those who export pay for the bridge's import
        tools: list[dict[str, Any]] = faces.openai_tools(self.tools, strict=strict, embed_annotations=embed_annotations)
        return tools


class _Stream:
    """The client of a call in a run: progress becomes an event, and there is nobody to ask."""

    def __init__(self, call: Call, clock: Clock, told: asyncio.Queue[ToolProgress | None]) -> None:
        self._call, self._clock, self._told = call, clock, told

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        common = about(self._call, self._clock.wall())
        self._told.put_nowait(ToolProgress(**common, progress=progress, total=total, message=message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return None
