"""What to change so that an agent gets a tool which it has not."""

from __future__ import annotations

from toolgrove.config import Config
from toolgrove.pool.offer import Offer
from toolgrove.pool.receipt import Verdict
from toolgrove.pool.resolve import SPAWN


def advice(config: Config, agent: str, offer: Offer, verdict: Verdict) -> str:
    """One sentence; empty where there is nothing to change."""
    section = f"agents.{agent}"
    _, _, pattern = verdict.rule.partition(": ")
    match verdict.verdict:
        case "denied" if verdict.rule.startswith("deny: "):
            return f"Take {pattern!r} out of {section}.deny: deny beats everything."
        case "denied" if verdict.rule.startswith("mcp does not select"):
            return f"Add '{offer.source}: {{}}' to {section}.mcp, or leave mcp out to select every server."
        case "denied":
            reader = config.agents[agent].role == "reader" and offer.tool is not None and offer.tool.mutates
            role = f" It changes something, so {section} also needs 'role: editor'." if reader else ""
            return f"Add {offer.name!r}, or a glob that covers it, to {section}.tools.{role}"
        case "masked":
            return f"Take {pattern!r} out of {section}.mcp.{offer.source}.mask."
        case "unvalidated":
            return "It comes in once its source offers a definition that holds."
        case "quarantined":
            name = f"{offer.source} {offer.own_name}"
            return f"'toolgrove pins diff {name}' shows what changed, 'toolgrove pins accept {name}' takes it."
        case "unavailable":
            return f"It comes back by itself when {offer.source!r} answers; 'toolgrove doctor' tells what is wrong."
        case "restricted":
            return _restricted(config, agent, verdict.rule)
    return ""


def _restricted(config: Config, agent: str, rule: str) -> str:
    section = f"agents.{agent}"
    if rule.startswith("role"):
        return f"Write 'role: editor' in {section} to let it change things."
    if rule.startswith("read-only"):
        place = section if config.agents[agent].read_only else "workspace"
        return f"Take 'readOnly: true' out of {place}."
    if rule.startswith("maxDepth"):
        return f"Raise {section}.maxDepth if it should still spawn agents at this depth."
    if SPAWN in rule:
        return f"Write {SPAWN!r} itself into {section}.tools: a glob does not opt in."
    return ""
