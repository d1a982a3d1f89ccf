"""`toolgrove explain`: why an agent has a tool or does not."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
from rich.console import RenderableType
from rich.table import Table

from toolgrove.agent import Agent
from toolgrove.cli.advice import advice
from toolgrove.cli.offered import offered_table
from toolgrove.cli.patience import add_patience
from toolgrove.cli.project import load, opened
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import depth
from toolgrove.config import Config
from toolgrove.errors import Forbidden, NotFound, ToolNotFound
from toolgrove.grove import Grove
from toolgrove.pool.receipt import Receipt, Standing
from toolgrove.types import Offered
from toolgrove.web import schemas

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


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "explain",
        parents=[shared],
        description="Say why an agent has each tool of the pool or does not; with TOOL, what to change.",
    )
    parser.add_argument("agent", metavar="AGENT")
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
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    return anyio.run(_explain, load(chosen), chosen, screen)


async def _explain(config: Config, chosen: argparse.Namespace, screen: Screen) -> int:
    async with opened(config, screen, wait=chosen.wait, agent=chosen.agent, name_missing=False) as grove:
        agent = await _resolved(grove, chosen)
        offered = await agent.offers() if chosen.tool is None else []
    if chosen.tool is None:
        _whole(agent, offered, screen)
    else:
        _one(grove, agent, chosen.tool, screen)
    return 0


async def _resolved(grove: Grove, chosen: argparse.Namespace) -> Agent:
    """The agent as it would be where it is asked about; who may not be started there has nothing to explain."""
    chain: list[str] = [*chosen.within, chosen.agent]
    agent = await grove.agent(chain[0], depth=chosen.depth)
    for name in chain[1:]:
        for above in agent.bounds:
            if not above.lets_spawn(name):
                raise Forbidden(
                    f"{above.agent} may not spawn {name}. Name {name!r} in agents.{above.agent}.maySpawn.",
                    reason="may_spawn",
                )
        agent = await grove.agent(name, within=agent.bounds)
    return agent


def _whole(agent: Agent, offered: Sequence[Offered], screen: Screen) -> None:
    receipt = agent.receipt
    counts = Counter(verdict.verdict for verdict in receipt.values())
    rest = ", ".join(f"{counts[kind]} {kind}" for kind in _ORDER[1:] if counts[kind])
    head = f"{_named(agent)}, depth {receipt.depth}: {counts['granted']} of {len(receipt)} tools"
    head += f" ({rest})" if rest else ""
    shown = [line(head, "bold"), line(f"pool revision {receipt.revision}, receipt {receipt.hash}", "dim")]
    shown += [line(_cost(receipt), "dim"), line("")]
    shown += [line(f"! {warning}", "yellow") for warning in receipt.warnings]
    shown += [line(f"! {offer.source}: {offer.reason}", "yellow") for offer in receipt.rejected]
    shown += [
        line(f"! {state.name} is unavailable: {state.problem}", "yellow")
        for state in receipt.sources.values()
        if state.problem
    ]
    beside: list[RenderableType] = [line(""), offered_table(offered)] if offered else []
    screen.answer(schemas.Receipt.of(receipt, offered, agent.approvals).to_json(), *shown, _verdicts(agent), *beside)


def _cost(receipt: Receipt) -> str:
    """What the list costs a model, source by source."""
    cost = receipt.cost
    sources = ", ".join(f"{name} {tokens:,}" for name, tokens in cost.sources.items())
    by = f": {sources}" if len(cost.sources) > 1 else ""
    return f"its list costs about {cost.total:,} tokens (an estimate), its budget is {cost.budget:,}{by}"


def _verdicts(agent: Agent) -> Table:
    shown = table("VERDICT", "TOOL", "SOURCE", "RULE")
    ranked = sorted(agent.receipt.items(), key=lambda item: (_ORDER.index(item[1].verdict), item[0]))
    for name, verdict in ranked:
        style = _STYLES.get(verdict.verdict, "red")
        shown.add_row(line(verdict.verdict, style), line(name), line(verdict.source), line(_rule(agent, name)))
    return shown


def _rule(agent: Agent, name: str) -> str:
    needs = agent.approvals.get(name)
    rule = agent.receipt[name].rule
    return f"{rule}; each call needs an approval ({needs})" if needs else rule


def _named(agent: Agent) -> str:
    *above, name = agent.receipt.chain
    return f"{name} within {' > '.join(above)}" if above else name


def _one(grove: Grove, agent: Agent, name: str, screen: Screen) -> None:
    receipt = agent.receipt
    rejected = next((offer for offer in receipt.rejected if offer.name == name), None)
    if name not in receipt:
        raise _unknown(name, receipt)
    verdict, offer = receipt[name], grove.pool.latest.offers.get(name)
    what_to_do = "" if offer is None else advice(grove.config, verdict.ancestor or agent.name, offer, verdict)
    has = verdict.verdict == "granted"
    message = [f"{_named(agent)} {'has' if has else 'does not have'} {name} of {verdict.source}: {verdict.verdict}"]
    message[0] += f" ({verdict.rule})."
    if name in agent.approvals:
        message.append(f"Each call needs an approval ({agent.approvals[name]}).")
    if what_to_do:
        message.append(what_to_do)
    if rejected is not None:
        message.append(f"Another offer of that name was refused: {rejected.reason}.")
    facts = {
        "agent": agent.name,
        "depth": receipt.depth,
        "chain": list(receipt.chain),
        "tool": name,
        **verdict._asdict(),
        "approval": agent.approvals.get(name),
        "advice": what_to_do,
        "revision": receipt.revision,
        "hash": receipt.hash,
    }
    screen.answer(facts, line(" ".join(message)))


def _unknown(name: str, receipt: Receipt) -> NotFound:
    """There is no such tool; if it could be one of a server that does not answer, say so."""
    for state in receipt.sources.values():
        if state.problem and name.startswith(f"{state.name}_"):
            text = f"{state.name} is unavailable, so that its tools are not known: {state.problem.rstrip('.')}."
            return NotFound(f"There is no tool {name!r} in the pool; {text}", tool=name, source=state.name)
    return ToolNotFound(name, receipt)
