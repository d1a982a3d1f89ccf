"""`toolgrove explain`: why an agent has a tool or does not."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
from rich.console import RenderableType
from rich.table import Table

from toolgrove.cli.desk.opening import desk, running
from toolgrove.cli.numbers import depth
from toolgrove.cli.offered import offered_table
from toolgrove.cli.options import add_patience, require_agent
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import named

if TYPE_CHECKING:
    from toolgrove.pool.receipt import Standing

_STYLES = {"granted": "green", "denied": "dim", "masked": "dim", "restricted": "yellow"}
_ORDER: tuple[Standing, ...] = (
    "granted",
    "restricted",
    "quarantined",
    "pending",
    "unvalidated",
    "unavailable",
    "masked",
    "denied",
)


_NAMED = 3
"""How many of the built-in tools that share a row are named."""


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "explain",
        parents=[shared],
        description="Say why an agent has each tool of the pool or does not; with TOOL, what to change.",
    )
    require_agent(parser)
    parser.add_argument("tool", metavar="TOOL", nargs="?")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--depth", type=depth, default=0, metavar="N", help="as a sub-agent at this depth (0)")
    place.add_argument(
        "--within",
        action="append",
        default=[],
        metavar="ABOVE",
        help="as a sub-agent of this agent; once for each one above it, the outermost first",
    )
    parser.add_argument("--all", action="store_true", help="give every built-in tool a line of its own")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    return anyio.run(_explain, chosen, screen)


async def _explain(chosen: argparse.Namespace, screen: Screen) -> int:
    here = running(screen, wait=chosen.wait, agent=chosen.agent, name_missing=False, looking=True)
    asked = {"agent": chosen.agent, "tool": chosen.tool, "depth": chosen.depth, "within": chosen.within}
    async with desk(chosen, screen, here) as project:
        found = await project.ask("explain", **asked)
    if chosen.tool is None:
        _whole(found, screen, every=chosen.all)
    else:
        screen.answer(found["facts"], line(found["message"]))
    return 0


def _whole(found: Mapping[str, Any], screen: Screen, *, every: bool) -> None:
    receipt = found["receipt"]
    counts = Counter(verdict["verdict"] for verdict in receipt["tools"].values())
    rest = ", ".join(f"{counts[kind]} {kind}" for kind in _ORDER[1:] if counts[kind])
    head = f"{named(receipt['chain'])}, depth {receipt['depth']}: {counts['granted']} of {len(receipt['tools'])} tools"
    head += f" ({rest})" if rest else ""
    shown = [line(head, "bold"), line(f"pool revision {receipt['revision']}, receipt {receipt['hash']}", "dim")]
    shown += [line(_cost(receipt["tokensEstimate"]), "dim"), line("")]
    shown += [line(f"! {warning}", "yellow") for warning in receipt["warnings"]]
    shown += [line(f"! {offer['source']}: {offer['reason']}", "yellow") for offer in receipt["rejected"]]
    shown += [
        line(f"! {name} is unavailable: {state['problem']}", "yellow")
        for name, state in receipt["sources"].items()
        if state["problem"]
    ]
    beside: list[RenderableType] = [line(""), offered_table(receipt["offered"])] if receipt["offered"] else []
    screen.answer(receipt, *shown, _verdicts(found, every=every), *beside)


def _cost(cost: Mapping[str, Any]) -> str:
    """What the list costs a model, source by source."""
    sources = ", ".join(f"{name} {tokens:,}" for name, tokens in cost["sources"].items())
    by = f": {sources}" if len(cost["sources"]) > 1 else ""
    return f"its list costs about {cost['total']:,} tokens (an estimate), its budget is {cost['budget']:,}{by}"


def _verdicts(found: Mapping[str, Any], *, every: bool) -> Table:
    """A row for each tool of your own servers, then the built-in ones, those with the same reason in one row."""
    shown = table("VERDICT", "TOOL", "SOURCE", "RULE")
    builtin, verdicts = set(found["builtin"]), found["receipt"]["tools"]
    rows: dict[tuple[Any, ...], list[str]] = {}
    for name, verdict in sorted(verdicts.items(), key=lambda item: (_ORDER.index(item[1]["verdict"]), item[0])):
        same = (verdict["verdict"], verdict["source"], _rule(found, name))
        rows.setdefault((*same, "" if name in builtin and not every else name), []).append(name)
    for (verdict, source, rule, own), names in sorted(rows.items(), key=lambda row: not row[0][3]):
        told = [*names[:_NAMED], f"and {len(names) - _NAMED} more"] if len(names) > _NAMED + 1 and not own else names
        shown.add_row(line(verdict, _STYLES.get(verdict, "red")), line(", ".join(told)), line(source), line(rule))
    return shown


def _rule(found: Mapping[str, Any], name: str) -> str:
    needs = found["approvals"].get(name)
    rule: str = found["receipt"]["tools"][name]["rule"]
    return f"{rule}; each call needs an approval ({needs})" if needs else rule
