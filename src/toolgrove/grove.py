"""The composition root: the only place that knows every part."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Self

from toolgrove.agent import Agent
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
from toolgrove.events import Event, Listener, PoolChanged
from toolgrove.pool.coordination import AvailableAgent, CoordinationSource, Spawn
from toolgrove.pool.offer import Offer
from toolgrove.pool.pool import Pool
from toolgrove.pool.resolve import Toolset, resolve
from toolgrove.pool.secrets import Secrets
from toolgrove.pool.snapshot import Snapshot
from toolgrove.runners.runner import Runner
from toolgrove.sources import Sources
from toolgrove.store.audit import AuditRing, AuditSink, JsonLines
from toolgrove.store.memory import MemoryJournal
from toolgrove.store.pins import MemoryPins, Pins
from toolgrove.tools import WorkspaceSource
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Call, Caller, Ceiling, Clock, Result, SystemClock, Tool

if TYPE_CHECKING:
    from apcore import Executor, Registry

log = logging.getLogger("toolgrove.pool")


class Grove:
    """One project in this process."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        clock: Clock | None = None,
        audit_sinks: Sequence[AuditSink] = (),
        extensions: Registry | Executor | None = None,
        runner: Runner | None = None,
    ) -> None:
        self.config = config or Config()
        self._clock: Clock = clock or SystemClock()
        settings = self.config.workspace
        self._file = JsonLines(settings.audit_log) if settings.audit_log is not None else None
        sinks = (*([self._file] if self._file is not None else []), *audit_sinks)
        self._journal = MemoryJournal(self._clock, sinks=sinks)
        self._listeners: list[Listener] = []
        self._workspace = Workspace(types=settings.types(), rulesets=settings.rules(), limits=settings.limits.limits())
        self.pins: Pins = MemoryPins(self._clock)
        self.secrets = self._secrets()
        self._given_runner = runner
        self._runner = runner or self._configured_runner()
        self._sources = Sources(pins=self.pins, clock=self._clock, extensions=extensions)
        self._coordination = CoordinationSource(available=self._available, spawn=self._spawner())
        own = WorkspaceSource(self._workspace, self._clock), self._coordination
        self.pool = Pool(
            [_builtin(tool) for source in own for tool in source.tools()],
            self._sources.of(self.config, self.secrets),
            budget=self.config.startup_budget,
            changed=self._pool_changed,
        )
        self._toolsets: dict[tuple[str, int], tuple[Snapshot, AgentConfig, Toolset]] = {}
        steps = (
            AuditStep(self._journal, self._clock, self._emit),
            RateLimitStep(self._rate_limit, self._clock),
            toolset_step,
            role_step,
            ValidateStep(),
            IdempotencyStep(self._journal),
            version_step,
        )
        self._chain = fold(steps, _run)
        self._numbers = count(1)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self.pool.running())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.__aexit__(kind, error, trace)
        if self._file is not None:
            self._file.close()

    @property
    def audit(self) -> AuditRing:
        """The latest audit records."""
        return self._journal.audit

    def listen(self, listener: Listener) -> None:
        """Hear of every event from now on."""
        self._listeners.append(listener)

    async def agent(
        self, name: str, *, depth: int = 0, session: str | None = None, within: Ceiling | None = None
    ) -> Agent:
        """Resolve an agent; its tools do not change afterwards."""
        definition = self._definition(name)
        toolset = self._toolset(await self.pool.snapshot(), name, definition, depth, within)
        settings = self.config.workspace
        caller = Caller(
            agent=name,
            session=session or name,
            depth=depth,
            role=definition.role,
            read_only=definition.read_only or settings.read_only,
            write_root=definition.write_root,
            concurrency=definition.concurrency or settings.concurrency,
        )
        return Agent(
            caller,
            toolset,
            description=definition.description,
            chain=self._chain,
            numbers=self._numbers,
            clock=self._clock,
        )

    async def reload(self, config: Config) -> None:
        """Go on with another configuration: sources that did not change stay connected, agents see it at once.

        The workspace keeps the settings that it was opened with.
        """
        if config.workspace != self.config.workspace:
            log.warning("The workspace section changed; that takes effect at the next start.")
        secrets_changed = config.secrets != self.config.secrets
        self.config = config.model_copy(update={"workspace": self.config.workspace})
        if secrets_changed:
            self.secrets = self._secrets()
        self._runner = self._given_runner or self._configured_runner()
        self._coordination.spawn = self._spawner()
        self.pool.replace(self._sources.of(self.config, self.secrets))
        await self.pool.snapshot()

    def _definition(self, name: str) -> AgentConfig:
        known = self.config.agents
        if name not in known:
            raise AgentNotFound(name, list(known))
        return known[name]

    def _toolset(
        self, snapshot: Snapshot, name: str, definition: AgentConfig, depth: int, within: Ceiling | None
    ) -> Toolset:
        kept = self._toolsets.get((name, depth)) if within is None else None
        if kept is not None and kept[0] is snapshot and kept[1] is definition:
            return kept[2]
        read_only = self.config.workspace.read_only
        toolset = resolve(snapshot, name, definition, depth=depth, read_only=read_only, within=within)
        for warning in toolset.receipt.warnings:
            log.warning("%s", warning)
        if within is None:
            self._toolsets[name, depth] = (snapshot, definition, toolset)
        return toolset

    async def _available(self, call: Call) -> Sequence[AvailableAgent]:
        snapshot = await self.pool.snapshot()
        depth = call.caller.depth + 1
        return [
            AvailableAgent(
                name=name,
                description=agent.description,
                tools=len(self._toolset(snapshot, name, agent, depth, call.ceiling).specs),
            )
            for name, agent in self.config.agents.items()
        ]

    def _spawner(self) -> Spawn | None:
        runner = self._runner
        if runner is None:
            return None

        async def spawn(call: Call, name: str, task: str) -> Result:
            agent = await self.agent(name, depth=call.caller.depth + 1, within=call.ceiling)
            return await runner.run(agent, task)

        return spawn

    def _configured_runner(self) -> Runner | None:
        if self.config.runner is None:
            return None
        fill = partial(self.secrets.fill, user="runner")
        runners = import_module("toolgrove.runners")  # only those who spawn pay for an HTTP client's import
        runner: Runner = runners.from_config(self.config.runner, lambda template, field: fill(template, field=field))
        return runner

    def _secrets(self) -> Secrets:
        return Secrets(self.config.secrets, folder=self.config.folder)

    def _rate_limit(self, agent: str) -> str | None:
        definition = self.config.agents.get(agent)
        return definition.rate_limit if definition is not None else None

    def _pool_changed(self, snapshot: Snapshot) -> None:
        self._emit(PoolChanged(revision=snapshot.revision, timestamp=self._clock.wall()))

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


async def _run(call: Call) -> Result:
    return await granted(call).source.call(call)


def _builtin(tool: Tool) -> Offer:
    name = tool.spec.name
    return Offer(name=name, own_name=name, source=tool.spec.source, kind="builtin", tool=tool)
