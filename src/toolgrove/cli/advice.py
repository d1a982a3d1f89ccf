"""What to change so that an agent gets a tool that it does not have."""

from __future__ import annotations

from toolgrove.config import Config
from toolgrove.pool.offer import Offer
from toolgrove.pool.receipt import Verdict
from toolgrove.pool.resolve import SPAWN


def advice(config: Config, agent: str, offer: Offer, verdict: Verdict) -> str:
    """One sentence; empty where there is nothing to change. `agent` is whose rule decided."""
    section = f"agents.{agent}"
    _, _, pattern = verdict.rule.partition(": ")
    match verdict.verdict:
        case "denied" if verdict.rule.startswith("deny: "):
            return f"Take {pattern!r} out of {section}.deny: deny beats everything."
        case "denied" if verdict.rule.startswith("mcp does not select"):
            return f"Add '{offer.source}: {{}}' to {section}.mcp, or leave mcp out to select every server."
        case "denied":
            role = _role(config, agent, offer)
            return f"Add {offer.name!r}, or a glob that covers it, to {section}.tools.{role}"
        case "masked" if verdict.rule.startswith(("mcpServers.", "httpTools.")):
            line = verdict.rule.partition(": ")[0].partition(" ")[0]
            return f"{line} leaves it out for every agent; change that line to take it."
        case "masked":
            return f"Take {pattern!r} out of {section}.mcp.{offer.source}.mask."
        case "unvalidated":
            return "It becomes available once its source offers a valid definition."
        case "quarantined":
            name = f"{offer.source} {offer.own_name}"
            return f"'toolgrove pins diff {name}' shows what changed; 'toolgrove pins accept {name}' accepts it."
        case "pending":
            name = f"{offer.source} {offer.own_name}"
            return f"'toolgrove pins diff {name}' shows it; 'toolgrove pins accept {name}' accepts it."
        case "unavailable" if "taskSupport" in verdict.rule:
            return "Nothing here changes that; look for another tool that does the same."
        case "unavailable":
            return f"It comes back by itself when {offer.source!r} answers; 'toolgrove doctor' says what is wrong."
        case "restricted":
            return _restricted(config, agent, verdict.rule)
    return ""


def _role(config: Config, agent: str, offer: Offer) -> str:
    if config.agents[agent].role != "reader" or offer.tool is None or not offer.tool.mutates:
        return ""
    or_reads = f"; if it only reads, write {offer.tool.reads_if} instead" if offer.tool.reads_if else ""
    return f" It changes something, so agents.{agent} also needs 'role: editor'{or_reads}."


def _restricted(config: Config, agent: str, rule: str) -> str:
    section = f"agents.{agent}"
    if rule.startswith("role"):
        return f"Write 'role: editor' in {section} to let it change things."
    if rule.startswith("read-only"):
        place = section if config.agents[agent].read_only else "workspace"
        return f"Take 'readOnly: true' out of {place}."
    if rule.startswith("maxDepth"):
        return f"Raise {section}.maxDepth if it should still spawn agents at this depth."
    if "apps: true" in rule:
        return f"Write 'apps: true' in {section} if its client shows MCP Apps and keeps such tools from the model."
    if "mayDelegate" in rule:
        return f"Add it to {section}.tools, or to {section}.mayDelegate, which lends the name alone."
    if SPAWN in rule:
        return f"Write {SPAWN!r} itself in {section}.tools: a glob is not enough."
    return ""
