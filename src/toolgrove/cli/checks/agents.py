"""Agents: does each have tools, and do its patterns mean something?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolgrove.agent import Agent
from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.cli.offered import counted
from toolgrove.config import AgentConfig, Config
from toolgrove.pool.globs import Globs
from toolgrove.pool.resolve import SPAWN
from toolgrove.pool.snapshot import PoolSnapshot
from toolgrove.pool.toolsets import Toolsets
from toolgrove.types import OWN_TOOLS, Offered


def check(config: Config, agent: Agent, snapshot: PoolSnapshot, offered: Sequence[Offered] = ()) -> Iterator[Finding]:
    """What an agent has, and what a person should know about it."""
    count = sum(spec.name not in OWN_TOOLS for spec in agent.granted)
    level: Level = "ok" if count else "error"
    cost = f"; its list costs about {agent.receipt.cost.total:,} tokens (an estimate)" if count else ""
    yield _finding(level, agent.name, f"has {count} of {len(snapshot.offers)} tools{counted(offered)}{cost}")
    for warning in agent.receipt.warnings:
        yield _finding("warning", agent.name, warning)
    definition = config.agents[agent.name]
    if all(not state.problem for state in snapshot.sources.values()):  # else a pattern may mean what is not there now
        yield from _patterns(agent.name, definition, snapshot, Toolsets(config.toolsets))
    for other in definition.may_spawn or ():
        if other not in config.agents:
            yield _finding("warning", agent.name, f"maySpawn: {other!r} is no agent of the project")
    yield from _lent(agent.name, definition, config, snapshot)
    if config.runner is None and any(spec.name == SPAWN for spec in agent.granted):
        text = f"has {SPAWN}, and the project has no runner to run sub-agents with: add one, or deny {SPAWN}"
        yield _finding("warning" if SPAWN in definition.tools else "note", agent.name, text)


def _lent(name: str, agent: AgentConfig, config: Config, snapshot: PoolSnapshot) -> Iterator[Finding]:
    """Names that an agent lends in vain, since its own role binds those who would use them."""
    if agent.role == "editor" and not agent.read_only and not config.workspace.read_only:
        return
    lent = Toolsets(config.toolsets).matches(agent.may_delegate, snapshot.offers)
    useless = [tool for tool in sorted(lent) if (found := snapshot.offers[tool].tool) is not None and found.mutates]
    if useless:
        shown = ", ".join(useless[:3]) + (f" and {len(useless) - 3} more" if len(useless) > 3 else "")
        yield _finding("note", name, f"mayDelegate lends {shown}, and nobody below a reader can use that")


def _patterns(name: str, agent: AgentConfig, snapshot: PoolSnapshot, sets: Toolsets) -> Iterator[Finding]:
    for key, patterns in (("deny", agent.deny), ("approve", agent.approve), ("mayDelegate", agent.may_delegate)):
        for pattern in patterns:
            if not sets.covers([pattern], snapshot.offers) and not Globs([pattern]).matches(OWN_TOOLS):
                yield _finding("warning", name, f"{key}: {pattern!r} matches no tool of the pool")
    for server, selection in (agent.mcp or {}).items():
        own = [offer.own_name for offer in snapshot.offers.values() if offer.source == server]
        for mask in selection.mask:
            if not any(Globs([mask]).match(tool) for tool in own):
                yield _finding("warning", name, f"mcp.{server}.mask: {mask!r} matches no tool of that server")


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="agents", level=level, subject=subject, message=message)
