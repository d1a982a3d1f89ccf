"""The command: run every check, print what it found."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import anyio
from rich.console import RenderableType

from toolgrove.cli.doctor import agents, audit, files, room, runner, secrets, servers, tools
from toolgrove.cli.doctor.finding import Finding
from toolgrove.cli.options import file
from toolgrove.cli.patience import add_patience
from toolgrove.cli.project import load, opened
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import Config
from toolgrove.grove import Grove
from toolgrove.pool.snapshot import PoolSnapshot
from toolgrove.types import Offered

_STYLES = {"ok": "green", "note": "dim", "warning": "yellow", "error": "red"}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "doctor",
        parents=[shared],
        description="Check the project file, secrets, file modes, servers, pins and agents. Starts the servers once, "
        "and prints the exact command of each.",
    )
    parser.add_argument("--no-start", action="store_true", help="do not start or ask any server")
    parser.add_argument("--probe", action="store_true", help="ask the model of the runner for one answer")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Check everything; 1 if something keeps the project from working."""
    config = load(chosen)
    found = list(_at_rest(chosen, config))
    snapshot: PoolSnapshot | None = None
    if chosen.no_start:
        found += servers.check(config, None)
    else:
        snapshot, alive = anyio.run(_alive, config, screen, chosen)
        found += alive
    counts = Counter(finding.level for finding in found)
    verdict = f"{_count(counts['error'], 'error')}, {_count(counts['warning'], 'warning')}"
    style = "red" if counts["error"] else "yellow" if counts["warning"] else "green"
    report = {
        "ok": not counts["error"],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "servers": servers.to_json(config, snapshot),
        "findings": [finding.to_json() for finding in found],
    }
    screen.answer(report, *_report(found), line(f"{verdict}.", f"bold {style}"))
    return 1 if counts["error"] else 0


def _at_rest(chosen: argparse.Namespace, config: Config) -> Iterator[Finding]:
    text = f"is in order: {_count(len(config.agents), 'agent')}, {_count(len(config.mcp_servers), 'MCP server')}"
    yield Finding(area="project", level="ok", subject=str(file(chosen)), message=text)
    yield from secrets.check(config)
    yield from files.check(file(chosen), config)
    yield from room.check(config)
    yield from audit.check(config)


async def _alive(config: Config, screen: Screen, chosen: argparse.Namespace) -> tuple[PoolSnapshot, list[Finding]]:
    async with opened(config, screen, wait=chosen.wait, name_missing=False) as grove:
        snapshot = await grove.pool.snapshot()
        resolved = [await grove.agent(name) for name in config.agents]
        driven = [finding async for finding in runner.check(config, grove, probe=chosen.probe)]
        offered = {agent.name: await agent.offers() for agent in resolved}
        beside = await _beside(grove)
    found = [*servers.check(config, snapshot, beside), *tools.check(snapshot)]
    for agent in resolved:
        found += agents.check(config, agent, snapshot, offered[agent.name])
    return snapshot, [*found, *driven]


async def _beside(grove: Grove) -> dict[str, list[Offered]]:
    """What each server has beside tools, whoever may have it."""
    found: dict[str, list[Offered]] = {}
    for server in grove.pool.resource_servers:
        found[server.name] = [Offered("resource", one["uri"], server.name) for one in await server.resources()]
    for source in grove.pool.prompt_servers:
        listed = [Offered("prompt", one["name"], source.name) for one in await source.prompts()]
        found.setdefault(source.name, []).extend(listed)
    return found


def _report(found: Iterable[Finding]) -> Iterator[RenderableType]:
    for area, findings in groupby(found, key=lambda finding: finding.area):
        shown = table()
        for _ in range(3):
            shown.add_column(overflow="fold")
        for finding in findings:
            level = line(finding.level, _STYLES[finding.level])
            shown.add_row(level, line(finding.subject, "bold"), line(finding.message))
        yield line(area, "bold underline")
        yield shown
        yield line("")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
