"""Operations: what the doctor asks of a project that runs."""

from __future__ import annotations

from typing import Any

from toolgrove.cli.checks import agents, runner, secrets, servers, text, tools
from toolgrove.cli.checks.finding import Finding
from toolgrove.grove import Grove
from toolgrove.pool.offer import Restarting
from toolgrove.types import Client, Offered

_NARROWED = Finding(
    area="agents",
    level="warning",
    subject="rateLimits",
    message="the store of the rate limits does not answer or lost its counts: each replica lets through its share of "
    "them, and while it does not answer, no change; see that it runs and keeps what it counts",
)


async def doctor(project: Grove, client: Client, *, probe: bool = False) -> Any:
    """What is found in servers, tools, agents, the runner and the tree."""
    config = project.config
    snapshot = await project.pool.snapshot()
    resolved = [await project.agent(name) for name in config.agents]
    driven = [finding async for finding in runner.check(config, project, probe=probe)]
    offered = {agent.name: await agent.offers() for agent in resolved}
    said = _last_words(project)
    found = [*secrets.check(config), *servers.check(config, snapshot, await _beside(project), said)]
    found += tools.check(snapshot)
    for agent in resolved:
        found += agents.check(config, agent, snapshot, offered[agent.name])
    # A store in a file is read at rest.
    in_tree = text.check(project.half_texts()) if config.workspace.is_database else ()
    narrowed = [] if await project.limits_are_whole() else [_NARROWED]
    return {
        "findings": [finding.to_json() for finding in (*found, *narrowed, *driven, *in_tree)],
        "servers": servers.to_json(config, snapshot, said),
    }


def _last_words(project: Grove) -> dict[str, list[str]]:
    """The last lines of each server's error output."""
    found: dict[str, list[str]] = {}
    for name in project.config.servers:
        source = project.pool.source(name)
        if isinstance(source, Restarting):
            found[name] = list(source.last_words)
    return found


async def _beside(project: Grove) -> dict[str, list[Offered]]:
    """What each server has beside tools, whoever may have it."""
    found: dict[str, list[Offered]] = {}
    for server in project.pool.resource_servers:
        found[server.name] = [Offered("resource", one["uri"], server.name) for one in await server.resources()]
    for source in project.pool.prompt_servers:
        listed = [Offered("prompt", one.definition["name"], source.name) for one in await source.prompts()]
        found.setdefault(source.name, []).extend(listed)
    return found
