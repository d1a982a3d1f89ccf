"""The composition root: the only place that knows every part."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import anyio
import anyio.to_thread

from toolgrove.agent import Agent
from toolgrove.call import Chain, Only
from toolgrove.call.abandoned import settle_abandoned
from toolgrove.call.approval import ApprovalStep
from toolgrove.call.audit import AuditStep, not_kept
from toolgrove.call.begun import BegunStep, changes_outside
from toolgrove.call.bodies import BodyWriter
from toolgrove.call.cut_off import CutOffStep
from toolgrove.call.idempotency import IdempotencyStep, is_repeatable
from toolgrove.call.ids import Ids
from toolgrove.call.in_flight import InFlightStep
from toolgrove.call.kept_results import KeptResults
from toolgrove.call.large_results import LargeResultStep
from toolgrove.call.parts import has_parts, parts_step
from toolgrove.call.rate_limit import RateLimitStep
from toolgrove.call.reading_on import ReadingOn
from toolgrove.call.recorder import Recorder
from toolgrove.call.role import is_for_writers, role_step
from toolgrove.call.scrub import ScrubStep, is_scrubbed
from toolgrove.call.toolset import is_unknown, toolset_step
from toolgrove.call.trace import TraceStep
from toolgrove.call.validate import ValidateStep
from toolgrove.config import AgentConfig, Config, ConfigFile, Recorded, RunnerConfig
from toolgrove.database import database_of
from toolgrove.errors import AgentNotFound
from toolgrove.events import Event, Listener, Listeners, PoolChanged, Tally, TreeChanged
from toolgrove.journals import journal_of
from toolgrove.logs import scrubbing
from toolgrove.lookout import looking
from toolgrove.model_run import AtOnce, ModelRun, in_time
from toolgrove.notary import notary_of
from toolgrove.notation.half_characters import refuse_half
from toolgrove.notifier import Notifier
from toolgrove.pool.coordination import AvailableAgent, CoordinationSource, Spawn, no_runner
from toolgrove.pool.definition_lint import ToolNames
from toolgrove.pool.exposure import Exposure
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.offer import Offer
from toolgrove.pool.offspring import Offspring
from toolgrove.pool.pool import Pool
from toolgrove.pool.prompts import Prompts
from toolgrove.pool.resolve import Toolset, resolve
from toolgrove.pool.resources import Resources
from toolgrove.pool.secrets import Secrets
from toolgrove.pool.snapshot import PoolSnapshot
from toolgrove.pool.toolsets import Toolsets
from toolgrove.project_identity import keep_project
from toolgrove.project_state import ProjectState
from toolgrove.shared_limits import shared_limits_of
from toolgrove.sources import Sources
from toolgrove.store.audit import (
    FACTS,
    NO_TREE,
    AuditLog,
    AuditRing,
    AuditSink,
    JsonLines,
    Place,
    Proof,
    ReplayedStore,
    Served,
)
from toolgrove.store.gc_pause import paused_collector
from toolgrove.store.journal import Deed, Extent, MemoryJournal, Stalled, Trouble
from toolgrove.store.state import Handoffs
from toolgrove.tools import WorkspaceSource
from toolgrove.tools.following import Divergence
from toolgrove.tree.account import Account
from toolgrove.tree.effects import Effects
from toolgrove.tree.tree import Tree
from toolgrove.tree.workspace import Workspace
from toolgrove.tree_shelf import GET_SUBTREE, TreeShelf
from toolgrove.types import Bounds, Call, Caller, Clock, ModelSettings, Result, SystemClock, Tool

if TYPE_CHECKING:
    from apcore import Executor, Registry
    from starlette.applications import Starlette

    from toolgrove.journals import AnyJournal
    from toolgrove.runners.runner import Runner
    from toolgrove.server_logins import ServerLogins
    from toolgrove.store.journal.postgres.journal import PostgresJournal
    from toolgrove.web.app import Gateway

log = logging.getLogger("toolgrove.pool")
_SHARED = ("temperature", "max_output_tokens", "deadline")
"""What an agent and the runner may both say about models."""
MAX_RUNS = 64


class _Resolved(NamedTuple):
    """An agent, and what it was resolved from."""

    snapshot: PoolSnapshot
    config: Config
    agent: Agent


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
        patience: float | None = None,
        looking: bool = False,
    ) -> None:
        """`patience` is how many seconds servers may take to start, instead of `startupBudget`.

        Who is only `looking` at tools and agents leaves the store alone, so that another process may have it.
        """
        self.config = config or Config()
        self.file: ConfigFile | None = None
        """The file that the configuration is from, where somebody follows it."""
        self.clock: Clock = clock or SystemClock()
        settings = self.config.workspace
        self.secrets = Secrets(self.config.secrets, folder=self.config.folder)
        self._notary = notary = None if looking else notary_of(self.config, self.secrets)
        copy = None if looking else settings.audit_log
        sinks = (*([JsonLines(copy, notary)] if copy is not None else []), *audit_sinks)
        database = database_of(self.config, self.secrets)
        self._journal: AnyJournal = (
            MemoryJournal(self.clock)
            if looking
            else journal_of(self.config, self.clock, database=database, sinks=sinks, notary=notary)
        )
        self._listeners = Listeners()
        self._workspace = Workspace(types=settings.types(), rulesets=settings.rules(), limits=settings.limits.limits())
        self._notifier = Notifier(lambda: self.config, self.secrets, self.clock, lambda: self.approvals)
        self._state = ProjectState(self.config.state_file, clock, database=database, publish=self._about_approvals)
        self.pins, self.approvals, self.tokens = self._state.pins, self._state.approvals, self._state.tokens
        self._given_runner = runner
        self._built_runner: tuple[RunnerConfig, Runner] | None = None
        self._runs_at_once = AtOnce(MAX_RUNS)
        self.misdeeds = Misdeeds()
        self._offspring = Offspring(self.config.state)
        self._sources = Sources(
            pins=self.pins,
            logins=self._state.logins,
            clock=self.clock,
            extensions=extensions,
            misdeeds=self.misdeeds,
            offspring=self._offspring,
        )
        self._coordination = CoordinationSource(
            self.clock, available=self._available, spawn=self._spawner(), scrub=self.secrets.scrub
        )
        self._tree_tools = WorkspaceSource(self._workspace, self.clock, self._writable)
        self._tree_shelf = TreeShelf(self._tree_tools)
        own = (*((self._tree_tools,) if settings.tree else ()), self._coordination)
        self.pool = Pool(
            [_builtin(tool) for source in own for tool in source.tools()],
            self._sources.of(self.config, self.secrets),
            budget=self.config.startup_budget,
            patience=patience,
            changed=self._pool_changed,
        )
        self._verdicts: dict[str, frozenset[tuple[str, str, str]]] = {}
        self._agents: dict[tuple[str, int], _Resolved] = {}
        self._bodies = BodyWriter(self.secrets, policy=self._recorded, size=lambda: self.config.record_body_bytes)
        audit = AuditStep(self._journal, self.clock, self._listeners, self._bodies)
        self._in_flight = InFlightStep()
        self._shared_limits = shared_limits_of(self.config, self.secrets, database)
        self._limits = RateLimitStep(self._rate_limit, self.clock, self._shared_limits)
        kept = KeptResults(self.clock)
        self._reading_on = ReadingOn(kept, self._max_tokens).tool()
        trace = TraceStep()
        steps = (
            Only(trace.concerns, trace),
            LargeResultStep(kept, self._max_tokens),
            audit,
            self._in_flight,
            self._limits,
            Only(is_unknown, toolset_step),
            Only(is_for_writers, role_step),
            ValidateStep(),
            Only(has_parts, parts_step),
            Only(is_repeatable, IdempotencyStep(self._journal)),
            Only(changes_outside, CutOffStep(self._journal)),
            ApprovalStep(self.approvals, scrub=self.secrets.scrub, ask_client=self._ask_client),
            Only(changes_outside, BegunStep(audit.begin)),
            Only(is_scrubbed, ScrubStep(self.secrets, strips=lambda: self.config.results.strip_control)),
        )
        self._chain = Chain(steps, _run)
        self._ids = Ids()
        self.recorder = Recorder(self._journal, self._state.deeds, self.clock, self._ids, scrub=self.secrets.scrub)
        self._looking = looking
        self._open = AsyncExitStack()

    @cached_property
    def server_logins(self) -> ServerLogins:
        """Logins to MCP servers; only those who log in pay for the client's import."""
        logins: ServerLogins = import_module("toolgrove.server_logins").ServerLogins(
            lambda: self.config, self.secrets, self._state.logins, self.clock, source=self.pool.source
        )
        return logins

    async def __aenter__(self) -> Self:
        try:
            with paused_collector():
                saved = await self._journal.open()
                self._open.push_async_callback(self._journal.close)
                if saved is not None:
                    self._workspace.resume(saved)
                    await anyio.to_thread.run_sync(self._belong)
            await self._follow()
            await self._settle_abandoned()
            self._open.enter_context(scrubbing(self.secrets.scrub_text))
            await self._open.enter_async_context(looking(self._looks()))
            if self._shared_limits is not None:
                self._open.push_async_callback(self._shared_limits.close)
                await self._open.enter_async_context(self._limits.watching())
            await self._open.enter_async_context(self._state.following(self._settle_abandoned, self._judged))
            await self._open.enter_async_context(self.recorder.following())
            await self._open.enter_async_context(self._notifier.running())
            await anyio.to_thread.run_sync(self._offspring.sweep)
            self._open.callback(self._offspring.end_all)
            await self._open.enter_async_context(self.pool.running())
        except BaseException:
            await self._open.aclose()
            raise
        return self

    def _belong(self) -> None:
        """Have the state say of which project it is."""
        keep_project(self.config, self.project)
        with suppress(OSError):  # whoever needs the state next reports it
            self._state.belong(self.project)

    async def _follow(self) -> None:
        """Where other processes may write the journal too, take over what they do."""
        if self._looking or not self.config.workspace.is_database:
            return
        journal = cast("PostgresJournal", self._journal)
        following = self._tree_tools.follow(journal, self._publish_of_another, self._record_divergence)
        loop = asyncio.get_running_loop()
        await self._open.enter_async_context(following.running())

        async def answer(question: str) -> None:
            with suppress(Stalled):  # whoever asks tells of a replica that does not answer
                await journal.answer(question, await self.served())

        bell = journal.listen(
            lambda: loop.call_soon_threadsafe(following.ring),
            lambda question: asyncio.run_coroutine_threadsafe(answer(question), loop),
        )
        self._open.push_async_callback(anyio.to_thread.run_sync, bell.end)

    async def served(self) -> Served:
        """Which tree this process serves: its version and a digest, which nobody works out before somebody asks."""
        following, name = self._tree_tools.following, "" if self.handoffs is None else self.handoffs.here
        if following is not None and following.is_diverged:
            return Served(name, self._workspace.newest, None)
        version, nodes = await self._tree_tools.settled()
        digest_of = import_module("toolgrove.store.journal.tables.replay").digest_of
        return Served(name, version, await anyio.to_thread.run_sync(digest_of, nodes))

    async def verify(self, anchors: Iterable[Place] = (), *, deep: bool = False) -> Proof:
        """Whether the audit log is as it was written; `deep`, whether the journal leads to the tree that is stored and
        served, too."""
        await self.recorder.collect()
        proof = await self.audit_log.verify(anchors)
        if not deep:
            return proof
        if not isinstance(self.audit_log, ReplayedStore):
            return replace(proof, tree=NO_TREE)
        own = [] if self.config.workspace.is_database else [(await self.served())._replace(name="here")]
        return replace(proof, tree=await self.audit_log.replay(own))

    async def _record_divergence(self, lost: Divergence) -> None:
        """Leave in the audit log what was answered here and is not in the stored history, some calls to a record."""
        for start in range(0, max(len(lost.calls), 1), FACTS):
            changes, calls = [], []
            for change, call_id in lost.calls[start : start + FACTS]:
                changes.append(change)
                calls.append(call_id)
            details = {"held": lost.held, "stored": lost.stored, "count": len(lost.calls)}
            await self.recorder.record(
                "store", "store.diverged", details={**details, "versions": changes, "callIds": calls}
            )

    def _publish_of_another(self, effects: Effects, deed: Deed) -> None:
        """Publish what a call in another process changed."""
        if effects.commits and self._listeners.hear(TreeChanged):
            ids, now = tuple(effects.after), self.clock.wall()
            self._listeners.publish(TreeChanged(**asdict(deed), timestamp=now, node_ids=ids, elsewhere=True))

    def _judged(self) -> None:
        """Ask those servers again whose definitions somebody accepted or refused, be it at another replica."""
        for name in self.config.mcp_servers:
            verdicts = frozenset((pin.own_name, pin.hash, pin.refused_hash) for pin in self.pins.of(name).values())
            if self._verdicts.get(name, verdicts) != verdicts:
                self.pool.invalidate(name)
            self._verdicts[name] = verdicts

    async def _settle_abandoned(self) -> None:
        if self._state.is_kept and not self._looking:
            try:
                await settle_abandoned(self.approvals, self._journal)
            except OSError as error:  # whoever needs the state next reports it; the claims wait for the next start
                log.debug("Approvals that were claimed before are left as they are: %s", error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()  # without the caller's own error, which is not one of the pool's tasks
        self._state.close()

    @property
    def project(self) -> str:
        """The identity of the project, which its store keeps; empty in memory."""
        return self._journal.project

    @property
    def audit(self) -> AuditRing:
        """The latest audit records of this process."""
        return self._journal.audit

    @property
    def audit_log(self) -> AuditLog:
        """All audit records that are kept."""
        return self._journal

    def account_of(self, version: str, *, agent: str, tool: str) -> Account | None:
        """What the call changed in the tree that left it at a version; None if nobody knows any more."""
        return self._workspace.account_of(version, agent=agent, tool=tool)

    @property
    def limit_faults(self) -> int:
        """How often the count that replicas share could not be asked."""
        return self._limits.faults

    async def limits_are_whole(self) -> bool:
        """Whether the count that replicas share answers now, and holds what it counted."""
        return await self._limits.look()

    @property
    def change_reruns(self) -> int:
        """How often a change was run again because another replica was quicker."""
        following = self._tree_tools.following
        return 0 if following is None else following.reruns

    @property
    def divergences(self) -> int:
        """How often what stood here was not in the stored history."""
        following = self._tree_tools.following
        return 0 if following is None else following.divergences

    @property
    def seconds_behind(self) -> float | None:
        """How long ago this replica last had all that the journal held; None where nobody else writes it."""
        following = self._tree_tools.following
        return None if following is None else following.seconds_behind

    @property
    def changes_behind(self) -> int | None:
        """How many changes of others this replica knows to lack; None where nobody can say."""
        following = self._tree_tools.following
        return None if following is None else following.changes_behind

    @property
    def open_calls(self) -> int:
        """How many calls are under way that change something outside."""
        return self._journal.unfinished.open_calls

    @property
    def unknown_calls(self) -> int:
        """How many calls may have changed something outside, and nobody knows whether they did."""
        return self._journal.unfinished.unknown_calls

    def extent(self) -> Extent | None:
        """How much room the store takes; None in memory."""
        return self._journal.extent() if not isinstance(self._journal, MemoryJournal) else None

    def half_texts(self) -> list[str]:
        """Where the workspace holds text with half a character, which an older version took in."""
        return self._workspace.half_texts()

    @property
    def tree(self) -> Tree:
        """The tree as it is now, to be looked at."""
        return self._workspace.tree

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Why what agents do cannot be kept, or what people decided not be read."""
        found = self._journal.trouble
        lost: tuple[Trouble, ...] = ("state_gone",) if self._state.is_lost else ()
        following = self._tree_tools.following
        if following is not None and following.is_diverged:
            found = "store_diverged"
        elif found is None and following is not None and not following.is_current:
            found = "store_behind"
        other: tuple[Trouble, ...] = ("file_outdated",) if self.newer_file is not None else ()
        narrowed: tuple[Trouble, ...] = ("limits_narrowed",) if self._limits.is_narrowed else ()
        return (*((found,) if found is not None else ()), *lost, *other, *narrowed)

    @property
    def audit_key(self) -> str:
        """The public half of the key that signs the audit log; empty where nothing signs it."""
        return self._notary.public if self._notary is not None else ""

    @property
    def question_key(self) -> bytes | None:
        """What seals the state of calls that wait for an answer, the same in every replica; None without a key."""
        notary = self._notary
        if notary is None or not notary.has_key:
            return None
        return (notary.stamp("questions") + notary.stamp("that wait")).encode()

    @property
    def handoffs(self) -> Handoffs | None:
        """Takes answers to the replica that asked; None where there is only one."""
        return self._state.handoffs

    @property
    def newer_file(self) -> str | None:
        """The hash of the newest project file that a replica has taken, where this one runs by another."""
        return self._state.newer_file

    async def took(self, digest: str, *, changed: bool) -> None:
        """Tell other replicas by which project file this one runs: it started with it, or the file `changed`."""
        try:
            await self._state.took(digest, changed=changed)
        except OSError as problem:
            log.warning("Other replicas were not told of the project file: %s", problem)

    @property
    def healthy(self) -> bool:
        """Whether what agents do can be kept."""
        return not self.troubles

    def _looks(self) -> list[Callable[[], None]]:
        """What has to be looked at again and again."""
        own = [self._journal.look] if not isinstance(self._journal, MemoryJournal) else []
        return [*own, self._state.look]

    async def _writable(self, call: Call) -> None:
        """Wait until the store is free; where that takes too long, refuse the call."""
        try:
            await self._journal.writable()
        except OSError:
            raise not_kept(call, self._journal) from None

    def asgi_app(
        self, *, host: str = "127.0.0.1", allowed_hosts: Collection[str] = (), anonymous: bool = False
    ) -> Starlette:
        """The gateway as an ASGI app; whoever asks needs a token of `tokens`, unless `anonymous` is asked for."""
        gateway = self.gateway(host=host, allowed_hosts=allowed_hosts, anonymous=anonymous)
        gateway.load()
        return gateway.app

    def gateway(
        self, *, host: str = "127.0.0.1", allowed_hosts: Collection[str] = (), anonymous: bool = False
    ) -> Gateway:
        """The gateway with what its server needs to end it gently."""
        with paused_collector():  # all of it stays, and looking for what may go takes a seventh of the time
            web = import_module("toolgrove.web.app")  # only those who serve pay for the bridge's import
        gateway: Gateway = web.Gateway(
            self, version=version("toolgrove"), host=host, allowed_hosts=allowed_hosts, anonymous=anonymous
        )
        return gateway

    async def run(self, agent: str, task: str, *, session: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Have an agent's model work on a task, and yield what happens; `run_finished` comes last.

        The events are those of `Agent.run`, and `text` for what models say. A call that a person must approve waits
        for them.
        """
        run = await self.model_run(agent, session=session)
        async with aclosing(run.events(task)) as events:
            async for event in events:
                yield event

    async def model_run(self, agent: str, *, session: str | None = None) -> ModelRun:
        """A run that has not begun; whatever stands against it is said now."""
        if self._spawner() is None:
            raise no_runner()
        resolved = await self._agent(agent, within=(), session=session)
        return ModelRun(resolved, self._ids.run(), self._drive, self.clock, self._runs_at_once)

    async def _drive(self, agent: Agent, task: str) -> Result:
        runner = await anyio.to_thread.run_sync(self.runner)  # its import may take seconds
        return await in_time(agent, runner.run(agent, task))

    def cut_off(self) -> None:
        """End the calls under way, each told what is known of it; none begins after this."""
        self._in_flight.cut_off()

    def hurry(self, seconds: float) -> None:
        """Have the servers that were started end within so many seconds when the project does."""
        self._offspring.hurry(seconds)

    def tell(self, event: Event) -> None:
        """Have everybody who listens hear of an event."""
        self._listeners.publish(event)

    def outlook(self, config: Config, agent: str) -> Toolset:
        """What an agent would be given by another configuration, with the sources as they are."""
        return self._resolved(self.pool.latest, agent, config.agents[agent], 0, (), config)

    def listen(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Hear of every event from now on, or of those kinds; call the result to end that."""
        return self._listeners.add(listener, *kinds)

    def tally(self, tally: Tally) -> None:
        """Have every call that succeeds counted from now on."""
        self._listeners.tally(tally)

    async def agent(
        self, name: str, *, depth: int = 0, session: str | None = None, within: tuple[Bounds, ...] = ()
    ) -> Agent:
        """Resolve an agent; its tools do not change afterwards.

        `within` are the bounds of the agent that it would be a sub-agent of.
        """
        return await self._agent(name, depth=depth, within=within, session=session)

    async def _agent(
        self, name: str, *, within: tuple[Bounds, ...], session: str | None, depth: int = 0, parent: Call | None = None
    ) -> Agent:
        self._definition(name)
        if session is not None:
            refuse_half(session, "session")
        snapshot = await self.pool.snapshot()
        if within or parent is not None:
            return self._made(snapshot, name, within, session, depth, parent)
        kept = self._agents.get((name, depth))
        if kept is None or kept.snapshot is not snapshot or kept.config is not self.config:
            agent = self._made(snapshot, name, within, None, depth, None)
            kept = self._agents[name, depth] = _Resolved(snapshot, self.config, agent)
        return kept.agent.in_session(session or name)

    def _made(
        self,
        snapshot: PoolSnapshot,
        name: str,
        within: tuple[Bounds, ...],
        session: str | None,
        depth: int,
        parent: Call | None,
    ) -> Agent:
        definition = self._definition(name)
        toolset = self._resolved(snapshot, name, definition, depth, within)
        for warning in toolset.receipt.warnings:
            log.warning("%s", warning)
        caller = Caller.bound_by(
            toolset.bounds,
            session=session,
            depth=toolset.receipt.depth,
            concurrency=definition.concurrency or self.config.workspace.concurrency,
            answer_tokens=(definition.answers or self.config.answers).max_tokens,
            parent=parent,
        )
        return Agent(
            caller,
            toolset,
            resources=Resources(
                self.pool.resource_servers,
                toolset.bounds,
                self._tree_shelf if GET_SUBTREE in toolset.callable else None,
            ),
            prompts=Prompts(self.pool.prompt_servers, toolset.bounds, partial(ToolNames.of, snapshot.offers.values())),
            description=definition.description,
            list_page=definition.list_page,
            chain=self._chain,
            secrets=self.secrets,
            ids=self._ids,
            clock=self.clock,
            settings=self._settings(definition),
            publish=parent.publish if parent is not None else None,
            patience=parent.patience if parent is not None else 0.0,
            hold=self.config.approvals.hold,
        )

    def _settings(self, definition: AgentConfig) -> ModelSettings:
        """How an agent's model is asked: as its own section says, else as the runner's does."""
        common = self.config.runner
        own = {name: getattr(definition, name) for name in ("prompt", "model", "max_turns", *_SHARED)}
        shared = {name: getattr(common, name) for name in _SHARED if common is not None and own[name] is None}
        return ModelSettings(**{**own, **shared})

    async def reload(self, config: Config) -> None:
        """Go on with another configuration: sources that did not change stay connected, agents see it at once.

        The workspace keeps the settings that it was opened with.
        """
        if config.workspace != self.config.workspace:
            log.warning("The workspace section changed; that takes effect at the next start.")
        self.config = config.model_copy(update={"workspace": self.config.workspace})
        self.secrets.rescope(config.secrets)
        self._bodies.forget()
        self._coordination.spawn = self._spawner()
        self.pool.replace(self._sources.of(self.config, self.secrets))
        self._pool_changed(await self.pool.snapshot())  # an agent's section may have changed though the pool did not

    def _definition(self, name: str) -> AgentConfig:
        known = self.config.agents
        if name not in known:
            raise AgentNotFound(name, list(known))
        return known[name]

    def _resolved(
        self,
        snapshot: PoolSnapshot,
        name: str,
        definition: AgentConfig,
        depth: int,
        within: tuple[Bounds, ...],
        config: Config | None = None,
    ) -> Toolset:
        config = config or self.config
        read_only = self.config.workspace.read_only
        return resolve(
            snapshot,
            name,
            definition,
            depth=depth,
            read_only=read_only,
            within=within,
            sets=Toolsets(config.toolsets),
            exposure=Exposure.of(config, definition, self._reading_on if self._max_tokens(name) else None),
        )

    async def _available(self, call: Call) -> Sequence[AvailableAgent]:
        snapshot = await self.pool.snapshot()
        return [
            AvailableAgent(
                name=name,
                description=self.config.agents[name].description,
                tools=len(self._resolved(snapshot, name, self.config.agents[name], 0, call.bounds).specs),
            )
            for name in self._spawnable(call)
        ]

    def _spawnable(self, call: Call) -> list[str]:
        """The agents that the caller may start: those that all of its chain may."""
        return [name for name in self.config.agents if all(one.lets_spawn(name) for one in call.bounds)]

    def _spawner(self) -> Spawn | None:
        return self._spawn if self._given_runner is not None or self.config.runner is not None else None

    async def _spawn(self, call: Call, number: int, name: str, task: str) -> Result:
        spawnable = self._spawnable(call)
        if name not in spawnable:
            raise AgentNotFound(name, spawnable)
        session = f"{call.caller.session}/{call.id}.{number}"
        agent = await self._agent(name, within=call.bounds, session=session, parent=call)
        with self._workspace.delegated(session):
            return await self._drive(agent, task)

    def runner(self) -> Runner:
        """What drives agents; a RunnerMissing says what it lacks."""
        wanted = self.config.runner
        if self._given_runner is not None:
            return self._given_runner
        if wanted is None:
            raise no_runner()
        if self._built_runner is None or self._built_runner[0] != wanted:
            runners = import_module("toolgrove.runners")  # only those who spawn pay for its import
            self._built_runner = wanted, runners.from_config(wanted, self._fill_for_runner)
        return self._built_runner[1]

    def _fill_for_runner(self, template: str, field: str) -> str:
        return self.secrets.fill(template, field=field, user="runner")

    def _ask_client(self, agent: str) -> bool:
        definition = self.config.agents.get(agent)
        return definition is not None and definition.ask_client

    def _recorded(self, agent: str, tool: str) -> Recorded:
        """What is kept of an agent's calls of a tool: as its own section says, else as the project does."""
        definition = self.config.agents.get(agent)
        offer = self.pool.latest.offers.get(tool)
        names = (tool,) if offer is None else (tool, *offer.also, offer.formerly)
        own = definition.record.of(*names) if definition is not None and definition.record is not None else None
        return own or self.config.record.of(*names) or "full"

    def _max_tokens(self, agent: str) -> int | None:
        """How large an agent's results may be: as its own section says, else as the project does."""
        definition = self.config.agents.get(agent)
        own = definition.results.max_tokens if definition is not None and definition.results is not None else None
        return own or self.config.results.max_tokens

    def _rate_limit(self, agent: str) -> str | None:
        definition = self.config.agents.get(agent)
        return definition.rate_limit if definition is not None else None

    def _about_approvals(self, event: Event) -> None:
        self._listeners.publish(event)
        self._notifier.hear(event)

    def _pool_changed(self, snapshot: PoolSnapshot) -> None:
        self._listeners.publish(PoolChanged(revision=snapshot.revision, timestamp=self.clock.wall()))


def _run(call: Call) -> Awaitable[Result]:
    return call.granted.source.call(call)


def _builtin(tool: Tool) -> Offer:
    name = tool.spec.name
    return Offer(name=name, own_name=name, source=tool.spec.source, kind="builtin", tool=tool)
