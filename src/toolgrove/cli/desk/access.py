"""Operations: which tools an agent has, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolgrove.agent import Agent
from toolgrove.cli.advice import advice
from toolgrove.cli.text import named
from toolgrove.errors import Forbidden, NotFound, ToolNotFound
from toolgrove.grove import Grove
from toolgrove.pool.receipt import Receipt
from toolgrove.types import FIND_TOOLS, Client, ToolSpec
from toolgrove.web import schemas


async def agents(project: Grove, client: Client) -> Any:
    """The names of the agents."""
    return list(project.config.agents)


async def tools(project: Grove, client: Client, *, agent: str, depth: int = 0) -> Any:
    """The tools of an agent, what their list costs, and what it has beside them."""
    found = await project.agent(agent, depth=depth)
    listed = {spec.name: spec.tokens for spec in found.tools}
    return {
        "agent": found.name,
        "tools": [_spec(spec, listed.get(spec.name)) for spec in found.granted],
        "summary": _summary(found),
        "offered": [one._asdict() for one in await found.offers()],
        "warnings": list(found.receipt.warnings),
    }


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


async def explain(
    project: Grove, client: Client, *, agent: str, tool: str | None = None, depth: int = 0, within: Sequence[str] = ()
) -> Any:
    """Why an agent has each tool or does not; of one tool, what to change as well."""
    found = await _resolved(project, [*within, agent], depth)
    if tool is not None:
        return _one(project, found, tool)
    receipt = schemas.Receipt.of(found.receipt, await found.offers(), found.approvals).to_json()
    builtin = [name for name, offer in project.pool.latest.offers.items() if offer.kind == "builtin"]
    return {"receipt": receipt, "approvals": dict(found.approvals), "builtin": builtin}


async def _resolved(project: Grove, chain: Sequence[str], depth: int) -> Agent:
    """The agent as it would be where it is asked about; who may not be started there has nothing to explain."""
    agent = await project.agent(chain[0], depth=depth)
    for name in chain[1:]:
        for above in agent.bounds:
            if not above.lets_spawn(name):
                raise Forbidden(
                    f"{above.agent} may not spawn {name}. Name {name!r} in agents.{above.agent}.maySpawn.",
                    reason="may_spawn",
                )
        agent = await project.agent(name, within=agent.bounds)
    return agent


def _one(project: Grove, agent: Agent, name: str) -> Any:
    receipt = agent.receipt
    rejected = next((offer for offer in receipt.rejected if offer.name == name), None)
    if name not in receipt:
        raise _unknown(name, receipt)
    verdict, offer = receipt[name], project.pool.latest.offers.get(name)
    what_to_do = "" if offer is None else advice(project.config, verdict.ancestor or agent.name, offer, verdict)
    has = verdict.verdict == "granted"
    whom = named(receipt.chain)
    message = [f"{whom} {'has' if has else 'does not have'} {name} of {verdict.source}: {verdict.verdict}"]
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
    return {"facts": facts, "message": " ".join(message)}


def _unknown(name: str, receipt: Receipt) -> NotFound:
    """There is no such tool; if it could be one of a server that does not answer, say so."""
    for state in receipt.sources.values():
        if state.problem and name.startswith(f"{state.name}_"):
            text = f"{state.name} is unavailable, so its tools are not known: {state.problem.rstrip('.')}."
            return NotFound(f"There is no tool {name!r} in the pool; {text}", tool=name, source=state.name)
    return ToolNotFound(name, receipt)
