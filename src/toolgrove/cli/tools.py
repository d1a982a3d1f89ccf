"""`toolgrove tools`: what an agent has."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import anyio

from toolgrove.cli.patience import add_patience
from toolgrove.cli.project import load, opened
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import depth
from toolgrove.config import Config
from toolgrove.types import ToolSpec

_SHORT = 72


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "tools", parents=[shared], help="list the tools of an agent", description="List the tools of an agent."
    )
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the agent")
    parser.add_argument("--depth", type=depth, default=0, metavar="N", help="as a sub-agent at this depth (0)")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    anyio.run(_list, load(chosen), chosen, screen)
    return 0


async def _list(config: Config, chosen: argparse.Namespace, screen: Screen) -> None:
    async with opened(config, screen, wait=chosen.wait, agent=chosen.agent) as grove:
        agent = await grove.agent(chosen.agent, depth=chosen.depth)
    shown = table("TOOL", "SOURCE", "EFFECT", "DESCRIPTION")
    for spec in agent.tools:
        effect = "reads" if spec.annotations.readonly else "changes"
        shown.add_row(*map(line, (spec.name, spec.source, effect, _short(spec.description))))
    specs = [_spec(spec) for spec in agent.tools]
    if agent.tools:
        screen.answer(specs, shown)
    else:
        screen.answer(specs, line(f"{agent.name} has no tools."))
    for warning in agent.receipt.warnings:
        screen.say(warning, "yellow")


def _short(description: str) -> str:
    first = description.strip().partition("\n")[0]
    return first if len(first) <= _SHORT else f"{first[: _SHORT - 1]}…"


def _spec(spec: ToolSpec) -> Mapping[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "outputSchema": spec.output_schema,
        "annotations": asdict(spec.annotations),
        "source": spec.source,
    }
