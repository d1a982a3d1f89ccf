"""`toolgrove tools`: what an agent has."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import anyio
from rich.console import RenderableType

from toolgrove.agent import Agent
from toolgrove.cli.offered import offered_table
from toolgrove.cli.patience import add_patience
from toolgrove.cli.project import load, opened
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import depth
from toolgrove.config import Config
from toolgrove.types import FIND_TOOLS, ToolSpec

_SHORT = 72


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("tools", parents=[shared], description="List the tools of an agent.")
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
        offered = await agent.offers()
    listed = {spec.name: spec.tokens for spec in agent.tools}
    shown = table("TOOL", "SOURCE", "EFFECT", "TOKENS", "DESCRIPTION")
    for spec in agent.granted:
        effect = "reads" if spec.annotations.readonly else "changes"
        tokens = f"{listed[spec.name]}" if spec.name in listed else "found"
        shown.add_row(*map(line, (spec.name, spec.source, effect, tokens, _short(spec.description))))
    specs = [_spec(spec, listed.get(spec.name)) for spec in agent.granted]
    beside: list[RenderableType] = [line(""), offered_table(offered)] if offered else []
    if agent.granted:
        screen.answer(specs, shown, line(_summary(agent), "dim"), *beside)
    else:
        screen.answer(specs, line(f"{agent.name} has no tools."), *beside)
    for warning in agent.receipt.warnings:
        screen.say(warning, "yellow")


def _short(description: str) -> str:
    first = description.strip().partition("\n")[0]
    return first if len(first) <= _SHORT else f"{first[: _SHORT - 1]}…"


def _summary(agent: Agent) -> str:
    """How much of it a model is shown, and what that costs."""
    total = agent.receipt.cost.total
    hidden = len(agent.granted) - len(agent.tools)
    found = f"; {hidden} more are found with {FIND_TOOLS}" if hidden else ""
    return f"{len(agent.tools)} listed, about {total:,} tokens (an estimate: characters / 4){found}."


def _spec(spec: ToolSpec, tokens: int | None) -> Mapping[str, Any]:
    return {
        "name": spec.name,
        "listed": tokens is not None,
        "tokensEstimate": spec.tokens if tokens is None else tokens,
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "outputSchema": spec.output_schema,
        "annotations": asdict(spec.annotations),
        "source": spec.source,
    }
