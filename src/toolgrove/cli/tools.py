"""`toolgrove tools`: what an agent has."""

from __future__ import annotations

import argparse
from typing import Any

import anyio
from rich.console import RenderableType

from toolgrove.cli.desk.opening import desk, running
from toolgrove.cli.numbers import depth
from toolgrove.cli.offered import offered_table
from toolgrove.cli.options import add_agent, add_patience
from toolgrove.cli.screen import Screen, line, table

_SHORT = 72


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("tools", parents=[shared], description="List the tools of an agent.")
    add_agent(parser)
    parser.add_argument("--depth", type=depth, default=0, metavar="N", help="as a sub-agent at this depth (0)")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    anyio.run(_list, chosen, screen)
    return 0


async def _list(chosen: argparse.Namespace, screen: Screen) -> None:
    async with desk(chosen, screen, running(screen, wait=chosen.wait, agent=chosen.agent, looking=True)) as project:
        found = await project.ask("tools", agent=chosen.agent, depth=chosen.depth)
    specs: list[dict[str, Any]] = found["tools"]
    shown = table("TOOL", "SOURCE", "EFFECT", "TOKENS", "DESCRIPTION")
    for spec in specs:
        effect = "reads" if spec["annotations"]["readonly"] else "changes"
        tokens = str(spec["tokensEstimate"]) if spec["listed"] else "found"
        shown.add_row(*map(line, (spec["name"], spec["source"], effect, tokens, _short(spec["description"]))))
    beside: list[RenderableType] = [line(""), offered_table(found["offered"])] if found["offered"] else []
    if specs:
        screen.answer(specs, shown, line(found["summary"], "dim"), *beside)
    else:
        screen.answer(specs, line(f"{found['agent']} has no tools."), *beside)
    for warning in found["warnings"]:
        screen.say(warning, "yellow")


def _short(description: str) -> str:
    first = description.strip().partition("\n")[0]
    return first if len(first) <= _SHORT else f"{first[: _SHORT - 1]}…"
