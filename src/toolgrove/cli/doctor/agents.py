"""Agents: does each have tools, and do its patterns mean something?"""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.agent import Agent
from toolgrove.cli.doctor.finding import Finding, Level
from toolgrove.config import AgentConfig, Config
from toolgrove.pool.globs import Globs
from toolgrove.pool.resolve import SPAWN
from toolgrove.pool.snapshot import Snapshot


def check(config: Config, agent: Agent, snapshot: Snapshot) -> Iterator[Finding]:
    """One agent."""
    count = len(agent.tools)
    level: Level = "ok" if count else "error"
    yield _finding(level, agent.name, f"has {count} of {len(snapshot.offers)} tools")
    for warning in agent.receipt.warnings:
        yield _finding("warning", agent.name, warning)
    definition = config.agents[agent.name]
    if all(not state.problem for state in snapshot.sources.values()):  # else a pattern may mean what is not there now
        yield from _patterns(agent.name, definition, snapshot)
    if config.runner is None and any(spec.name == SPAWN for spec in agent.tools):
        text = f"has {SPAWN}, and the project has no runner to run sub-agents with: add one, or deny {SPAWN}"
        yield _finding("warning" if SPAWN in definition.tools else "note", agent.name, text)


def _patterns(name: str, agent: AgentConfig, snapshot: Snapshot) -> Iterator[Finding]:
    for key, patterns in (("deny", agent.deny), ("approve", agent.approve), ("mayDelegate", agent.may_delegate)):
        for pattern in patterns:
            if not any(Globs([pattern]).match(tool) for tool in snapshot.offers):
                yield _finding("warning", name, f"{key}: {pattern!r} matches no tool of the pool")
    for server, selection in (agent.mcp or {}).items():
        own = [offer.own_name for offer in snapshot.offers.values() if offer.source == server]
        for mask in selection.mask:
            if not any(Globs([mask]).match(tool) for tool in own):
                yield _finding("warning", name, f"mcp.{server}.mask: {mask!r} matches no tool of that server")


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="agents", level=level, subject=subject, message=message)
