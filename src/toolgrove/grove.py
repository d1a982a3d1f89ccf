"""The composition root: the only place that knows every part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from importlib import import_module
from itertools import count
from types import TracebackType
from typing import Any, Self

from toolgrove.call import fold
from toolgrove.call.audit import AuditStep
from toolgrove.call.idempotency import IdempotencyStep
from toolgrove.call.rate_limit import RateLimitStep
from toolgrove.call.role import role_step
from toolgrove.call.toolset import granted, toolset_step
from toolgrove.call.validate import ValidateStep
from toolgrove.call.version import version_step
from toolgrove.config import AgentConfig, Config
from toolgrove.errors import AgentNotFound
from toolgrove.events import Event, Listener
from toolgrove.store.audit import AuditRing, AuditSink, JsonLines
from toolgrove.store.audit_log import AuditLog
from toolgrove.store.collector import paused_collector
from toolgrove.store.memory import MemoryJournal
from toolgrove.store.sqlite import SqliteJournal
from toolgrove.tools import WorkspaceSource
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Arguments, Call, Caller, Clock, Next, Result, SystemClock, Tool, ToolSpec


class Agent:
    """An agent at work: its tools are fixed from the moment it was resolved."""

    def __init__(self, caller: Caller, tools: Sequence[Tool], chain: Next, numbers: count[int]) -> None:
        self._caller = caller
        self._granted = {tool.spec.name: tool for tool in tools}
        self._chain = chain
        self._numbers = numbers
        self.tools: tuple[ToolSpec, ...] = tuple(tool.spec for tool in tools if caller.may_write or not tool.mutates)
        self._known = tuple(spec.name for spec in self.tools)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._caller.agent

    async def call(self, name: str, arguments: Arguments | None = None) -> Result:
        """Call a tool; a failure is an answer with `error`, never an exception."""
        call = Call(
            id=f"c{next(self._numbers)}",
            name=name,
            tool=self._granted.get(name),
            arguments={} if arguments is None else arguments,
            caller=self._caller,
            known=self._known,
        )
        return await self._chain(call)

    def openai_tools(self, *, strict: bool = False, embed_annotations: bool = False) -> list[dict[str, Any]]:
        """The same tools as OpenAI tool definitions."""
        faces = import_module("toolgrove.faces")  # only those who export pay for the bridge's import
        tools: list[dict[str, Any]] = faces.openai_tools(self.tools, strict=strict, embed_annotations=embed_annotations)
        return tools


class Grove:
    """One project in this process."""

    def __init__(
        self, config: Config | None = None, *, clock: Clock | None = None, audit_sinks: Sequence[AuditSink] = ()
    ) -> None:
        self.config = config or Config()
        self._clock: Clock = clock or SystemClock()
        settings = self.config.workspace
        sinks = (*([JsonLines(settings.audit_log)] if settings.audit_log is not None else []), *audit_sinks)
        path = settings.store_path
        self._journal: MemoryJournal | SqliteJournal = (
            MemoryJournal(self._clock, sinks=sinks) if path is None else SqliteJournal(path, self._clock, sinks=sinks)
        )
        self._listeners: list[Listener] = []
        self._workspace = Workspace(types=settings.types(), rulesets=settings.rules(), limits=settings.limits.limits())
        self._sources = (WorkspaceSource(self._workspace, self._clock),)
        rates = {name: agent.rate_limit for name, agent in self.config.agents.items()}
        steps = (
            AuditStep(self._journal, self._clock, self._emit),
            RateLimitStep(rates, self._clock),
            toolset_step,
            role_step,
            ValidateStep(),
            IdempotencyStep(self._journal),
            version_step,
        )
        self._chain = fold(steps, _run)
        self._numbers = count(1)

    async def __aenter__(self) -> Self:
        with paused_collector():
            saved = await self._journal.open()
            if saved is not None:
                self._workspace.resume(saved)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._journal.close()

    @property
    def audit(self) -> AuditRing:
        """The latest audit records of this process."""
        return self._journal.audit

    @property
    def audit_log(self) -> AuditLog:
        """All audit records that are kept."""
        return self._journal

    def listen(self, listener: Listener) -> None:
        """Hear of every event from now on."""
        self._listeners.append(listener)

    async def agent(self, name: str, *, depth: int = 0, session: str | None = None) -> Agent:
        """Resolve an agent; its tools do not change afterwards."""
        known = self.config.agents
        if name not in known:
            raise AgentNotFound(name, list(known))
        definition = known[name]
        settings = self.config.workspace
        caller = Caller(
            agent=name,
            session=session or name,
            role=definition.role,
            read_only=definition.read_only or settings.read_only,
            write_root=definition.write_root,
            concurrency=definition.concurrency or settings.concurrency,
        )
        offered = [tool for source in self._sources for tool in source.tools()]
        return Agent(caller, _allowed(definition, offered), self._chain, self._numbers)

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


async def _run(call: Call) -> Result:
    return await granted(call).source.call(call)


def _allowed(definition: AgentConfig, offered: Sequence[Tool]) -> list[Tool]:
    """The tools that an agent's patterns name; `deny` beats `tools`."""
    wanted, denied = _pattern(definition.tools), _pattern(definition.deny)
    return [tool for tool in offered if wanted.fullmatch(tool.spec.name) and not denied.fullmatch(tool.spec.name)]


def _pattern(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)) or r"(?!)")
