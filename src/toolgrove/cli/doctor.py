"""`toolgrove doctor`: run every check, print what it found."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import anyio
from rich.console import RenderableType

from toolgrove.cli.checks import audit, files, room, secrets, servers, text
from toolgrove.cli.checks.finding import Finding
from toolgrove.cli.desk.opening import desk, running
from toolgrove.cli.options import add_patience, file
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import Config

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
    if chosen.no_start:
        found += (*secrets.check(config), *servers.check(config, None))
        entries = servers.to_json(config, None)
    else:
        alive = anyio.run(_alive, chosen, screen)
        found += [Finding(**finding) for finding in alive["findings"]]
        entries = alive["servers"]
    counts = Counter(finding.level for finding in found)
    verdict = f"{_count(counts['error'], 'error')}, {_count(counts['warning'], 'warning')}"
    style = "red" if counts["error"] else "yellow" if counts["warning"] else "green"
    report = {
        "ok": not counts["error"],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "servers": entries,
        "findings": [finding.to_json() for finding in found],
    }
    screen.answer(report, *_report(found), line(f"{verdict}.", f"bold {style}"))
    return 1 if counts["error"] else 0


def _at_rest(chosen: argparse.Namespace, config: Config) -> Iterator[Finding]:
    said = f"is in order: {_count(len(config.agents), 'agent')}, {_count(len(config.mcp_servers), 'MCP server')}"
    yield Finding(area="project", level="ok", subject=str(file(chosen)), message=said)
    yield from files.check(file(chosen), config)
    yield from room.check(config)
    yield from audit.check(config)
    yield from text.at_rest(config)


async def _alive(chosen: argparse.Namespace, screen: Screen) -> dict[str, Any]:
    """What the running gateway says of its servers and agents; without one they are started once."""
    async with desk(chosen, screen, running(screen, wait=chosen.wait, name_missing=False, looking=True)) as project:
        found: dict[str, Any] = await project.ask("doctor", probe=chosen.probe)
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
