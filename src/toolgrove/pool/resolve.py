"""From the pool and an agent's definition to the tools it has: a pure function with a receipt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolgrove.config import AgentConfig
from toolgrove.config.toolsets import is_set
from toolgrove.errors import closest
from toolgrove.pool.discovery import discovery_tools
from toolgrove.pool.exposure import Exposure
from toolgrove.pool.globs import Globs, is_exact
from toolgrove.pool.offer import Offer
from toolgrove.pool.receipt import ListCost, Receipt, Verdict
from toolgrove.pool.snapshot import PoolSnapshot
from toolgrove.pool.toolsets import Toolsets
from toolgrove.types import OWN_TOOLS, READ_RESULT, Bounds, PromptGrant, Role, Tool, ToolSpec

SPAWN = "spawn_agents"
_HINTS = 3
COORDINATION = frozenset((SPAWN, "list_available_agents"))
_NO_SETS = Toolsets()
_LISTING = Exposure()
_CLIENT_LIMITS = ((100, "Windsurf"), (128, "VS Code and OpenAI's API"))
"""How many tools well-known clients take; some refuse more, others leave tools out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolset:
    """The tools of an agent, fixed for an execution.

    `listed` is what it is shown, `specs` all that it has. `callable` holds what the chain lets through to its role
    step: what it has, and what only the role or read-only mode keeps away. `approvals` tells by which rule a tool needs
    one, `bounds` the limits that the agent and all above it put on those it spawns.
    """

    listed: tuple[ToolSpec, ...]
    specs: tuple[ToolSpec, ...]
    names: tuple[str, ...]
    callable: Mapping[str, Tool]
    approvals: Mapping[str, str]
    bounds: tuple[Bounds, ...]
    receipt: Receipt


def resolve(
    snapshot: PoolSnapshot,
    name: str,
    agent: AgentConfig,
    *,
    depth: int = 0,
    read_only: bool = False,
    within: tuple[Bounds, ...] = (),
    sets: Toolsets = _NO_SETS,
    exposure: Exposure = _LISTING,
) -> Toolset:
    """The tools of an agent, and why; `within` are the agents above it, the outermost first, `sets` the project's.

    `exposure` decides which of them it is shown. Each agent above takes away what it may not do itself. Without any,
    `depth` may say how deep it is all the same.
    """
    depth = len(within) or depth
    judge = _Judge(snapshot, agent, depth, read_only or agent.read_only, within, sets)
    verdicts = {tool_name: judge.decide(offer) for tool_name, offer in snapshot.offers.items()}
    visible = judge.given
    added = _added(visible, agent, exposure, sets)
    verdicts |= {tool_name: verdict for tool_name, (_, verdict) in added.items()}
    own_tools = {tool_name: tool for tool_name, (tool, verdict) in added.items() if verdict.verdict == "granted"}
    has = {**visible, **own_tools}
    searching = bool(exposure.searches(visible))
    specs = tuple([tool.spec for tool in has.values()])
    listed = specs
    if searching:
        always = sets.matches(exposure.always, {one: snapshot.offers[one] for one in visible})
        listed = tuple([tool.spec for one, tool in has.items() if one in always or one in own_tools])
    listed = exposure.shown(listed)
    cost = ListCost(
        tools={spec.name: spec.tokens for spec in listed}, sources=_by_source(listed), budget=exposure.budget
    )
    receipt = Receipt(
        agent=name,
        depth=depth,
        chain=(*(one.agent for one in within), name),
        revision=snapshot.revision,
        hash=_fingerprint(snapshot, name, agent, depth, read_only, within, sets, exposure),
        verdicts=verdicts,
        sources=snapshot.sources,
        rejected=snapshot.rejected,
        warnings=(
            *_warnings(snapshot, name, agent, depth, verdicts, bool(visible), sets),
            *_about_the_list(name, cost, searching=searching),
        ),
        cost=cost,
    )
    own = Bounds(
        agent=name,
        tools=frozenset(visible),
        may_delegate=agent.may_delegate,
        may_spawn=agent.may_spawn,
        approve=agent.approve,
        role=agent.role,
        read_only=read_only or agent.read_only,
        write_root=agent.write_root,
        receipt=receipt.hash,
        resources=tuple(one for one in agent.resources if agent.mcp is None or one.partition(":")[0] in agent.mcp),
        prompts=PromptGrant(agent.prompts, agent.deny, None if agent.mcp is None else tuple(agent.mcp)),
    )
    return Toolset(
        listed=listed,
        specs=specs,
        names=tuple(has),
        callable={**has, **judge.kept_away},
        approvals=_approvals(snapshot, visible, agent, within, sets),
        bounds=(*within, own),
        receipt=receipt,
    )


def _by_source(listed: Sequence[ToolSpec]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for spec in listed:
        totals[spec.source] = totals.get(spec.source, 0) + spec.tokens
    return totals


def _about_the_list(name: str, cost: ListCost, *, searching: bool) -> Iterator[str]:
    """What is too much for a model, or for a client that many use."""
    count, total = len(cost.tools), cost.total
    advice = "name fewer in always" if searching else "write expose: auto, or give it fewer tools"
    if total > cost.budget:
        yield (
            f"Agent {name!r} is shown {count} tools, which cost about {total:,} tokens (an estimate), more than its "
            f"toolBudget of {cost.budget:,}: {advice}."
        )
    exceeded = [f"{client} ({most})" for most, client in _CLIENT_LIMITS if count > most]
    if exceeded:
        yield f"Agent {name!r} is shown {count} tools, more than {' and '.join(exceeded)} take: {advice}."


def _added(
    visible: Mapping[str, Tool], agent: AgentConfig, exposure: Exposure, sets: Toolsets
) -> dict[str, tuple[Tool, Verdict]]:
    """The tools that come without a pattern: those of search, and the one that reads on in large results."""
    added: dict[str, tuple[Tool, str]] = {}
    rule = exposure.searches(visible)
    if rule:
        added |= {tool.own_name: (tool, rule) for tool in discovery_tools(visible)}
    if visible and exposure.read_result is not None:
        added[READ_RESULT] = exposure.read_result, "results.maxTokens"
    denied = Globs([pattern for pattern in sets.patterns(agent.deny) if not is_set(pattern)]).matches(added)
    return {
        name: (
            tool,
            Verdict("denied", f"deny: {denied[name]}", tool.spec.source)
            if name in denied
            else Verdict("granted", why, tool.spec.source),
        )
        for name, (tool, why) in added.items()
    }


def _approvals(
    snapshot: PoolSnapshot, visible: Mapping[str, Tool], agent: AgentConfig, within: tuple[Bounds, ...], sets: Toolsets
) -> dict[str, str]:
    """By which rule a tool needs an approval: the agent's own, else its source's, else that of one above."""
    patterned = bool(within or agent.approve)
    offers = {name: snapshot.offers[name] for name in visible} if patterned else {}
    rules: dict[str, str] = {}
    for above in within:
        found = sets.covers(above.approve, offers)
        rules.update((name, f"approve: {pattern} of agent {above.agent!r}") for name, pattern in found.items())
    rules.update((name, tool.approval) for name, tool in visible.items() if tool.approval is not None)
    rules.update((name, f"approve: {pattern}") for name, pattern in sets.covers(agent.approve, offers).items())
    return rules


_CHANGES = "the tool changes something"
_FOR_APPS = "only the page of an MCP App calls it (_meta.ui.visibility); apps: true gives it to the agent's client"


class _Judge:
    """The rules of one agent and of those above it, in the order in which they decide."""

    def __init__(
        self,
        snapshot: PoolSnapshot,
        agent: AgentConfig,
        depth: int,
        read_only: bool,
        within: tuple[Bounds, ...],
        sets: Toolsets,
    ) -> None:
        self._named = sets.matches(agent.tools, snapshot.offers)
        self._denied = sets.covers(agent.deny, snapshot.offers)
        self._masks = None if agent.mcp is None else {s: Globs(chosen.mask) for s, chosen in agent.mcp.items()}
        self._by_role = _role_rule(agent.role, read_only, within)
        self._depth_rule = _depth_rule(agent, depth)
        self._apps = agent.apps
        lent = [sets.matches(one.may_delegate, snapshot.offers) for one in within]
        self._above = [(one.agent, one.tools, names) for one, names in zip(within, lent, strict=True)]
        self._granted: dict[tuple[str, str], Verdict] = {}
        self._unnamed: dict[str, Verdict] = {}
        self.given: dict[str, Tool] = {}
        self.kept_away: dict[str, Tool] = {}
        """What only the role or read-only mode, its own or that of one above it, keeps away."""

    def decide(self, offer: Offer) -> Verdict:
        """Apply the rules in their order; the first that speaks against a tool is the one on the receipt."""
        name, source = offer.name, offer.source
        if name in self._denied:
            return Verdict("denied", f"deny: {self._denied[name]}", source)
        pattern = self._named.get(name)
        if pattern is None:
            return self._unnamed.get(source) or self._not_named(source)
        if offer.kind == "mcp" and self._masks is not None:
            masks = self._masks.get(source)
            if masks is None:
                return Verdict("denied", f"mcp does not select server {source!r}", source)
            mask = masks.match(offer.own_name)
            if mask is not None:
                return Verdict("masked", f"mcp.{source}.mask: {mask}", source)
        tool = offer.tool
        if offer.standing != "ready" or tool is None:
            return Verdict(offer.standing if offer.standing != "ready" else "unavailable", offer.reason, source)
        if tool.for_apps and not self._apps:
            return Verdict("restricted", _FOR_APPS, source)
        if self._depth_rule is not None and name in COORDINATION:
            return Verdict("restricted", self._depth_rule, source)
        for above, tools, lent in self._above:
            if name not in tools and name not in lent:
                rule = f"agent {above!r} can neither use it nor hand it on (mayDelegate)"
                return Verdict("restricted", rule, source, above)
        if self._by_role is not None and tool.mutates:
            rule, whose = self._by_role
            opening = f"; if it only reads, write {tool.reads_if}" if tool.reads_if else ""
            self.kept_away[name] = tool
            return Verdict("restricted", f"{rule}{opening}", source, whose)
        self.given[name] = tool
        return self._granted.get((pattern, source)) or self._given(pattern, source)

    def _not_named(self, source: str) -> Verdict:
        self._unnamed[source] = verdict = Verdict("denied", "no pattern in tools names it", source)
        return verdict

    def _given(self, pattern: str, source: str) -> Verdict:
        self._granted[pattern, source] = verdict = Verdict("granted", f"tools: {pattern}", source)
        return verdict


def _role_rule(role: Role, read_only: bool, within: tuple[Bounds, ...]) -> tuple[str, str | None] | None:
    """Why nothing that changes something is open, and whose rule that is if it is an ancestor's."""
    if read_only:
        return f"read-only mode: {_CHANGES}", None
    if role == "reader":
        return f"role 'reader': {_CHANGES}", None
    for above in within:
        if above.read_only:
            return f"read-only mode of agent {above.agent!r}: {_CHANGES}", above.agent
        if above.role == "reader":
            return f"role 'reader' of agent {above.agent!r}: {_CHANGES}", above.agent
    return None


def _depth_rule(agent: AgentConfig, depth: int) -> str | None:
    if depth <= 0:
        return None
    if depth >= agent.max_depth:
        return f"maxDepth {agent.max_depth} is reached at depth {depth}"
    if not Globs(agent.tools).names(SPAWN):
        return f"a sub-agent has it only if tools lists {SPAWN!r} by its exact name"
    return None


def _warnings(
    snapshot: PoolSnapshot,
    name: str,
    agent: AgentConfig,
    depth: int,
    verdicts: Mapping[str, Verdict],
    has_tools: bool,
    sets: Toolsets,
) -> Iterator[str]:
    if depth >= agent.max_depth > 0 and depth and SPAWN in sets.matches(agent.tools, _only(snapshot, SPAWN)):
        yield f"Agent {name!r} is at depth {depth} of maxDepth {agent.max_depth}: {SPAWN} is removed."
    listed = dict.fromkeys(sets.patterns(agent.tools))
    missing = [one for one in listed if one not in verdicts and one not in OWN_TOOLS and is_exact(one)]
    if missing:
        formerly = {offer.formerly for offer in snapshot.offers.values()}
        missing = [one for one in missing if one not in formerly and not is_set(one)]
    for at, pattern in enumerate(missing):
        near = closest(pattern, verdicts) if at < _HINTS else None  # each one looks at every name
        hint = f" Did you mean {near!r}?" if near else ""
        yield f"Agent {name!r} lists tool {pattern!r}, which is not in the pool; it is skipped.{hint}"
    outdated = {
        new: spelt
        for patterns in agent.selections().values()
        for new, spelt in sets.outdated(patterns, snapshot.offers).items()
    }
    for new, spelt in list(outdated.items())[:_HINTS]:
        yield f"Agent {name!r} names {spelt!r} by an old spelling, which still counts; it is {new!r} now."
    for server in agent.mcp or ():
        if server not in snapshot.sources:
            yield f"Agent {name!r} selects MCP server {server!r}, which the project does not have."
    for server in dict.fromkeys(pattern.partition(":")[0] for pattern in agent.resources):
        if server not in snapshot.sources:
            yield f"Agent {name!r} lists resources of MCP server {server!r}, which the project does not have."
    if not has_tools:
        yield (
            f"Agent {name!r} ends up with no tools at all: {_why_none(agent, verdicts)} "
            f"'toolgrove explain {name}' tells why for each tool."
        )


def _only(snapshot: PoolSnapshot, name: str) -> dict[str, Offer]:
    offer = snapshot.offers.get(name)
    return {} if offer is None else {name: offer}


def _why_none(agent: AgentConfig, verdicts: Mapping[str, Verdict]) -> str:
    if not agent.tools:
        return "its definition lists none (tools is absent or empty)."
    counts: dict[str, int] = {}
    for verdict in verdicts.values():
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) + "."


def _fingerprint(
    snapshot: PoolSnapshot,
    name: str,
    agent: AgentConfig,
    depth: int,
    read_only: bool,
    within: tuple[Bounds, ...],
    sets: Toolsets,
    exposure: Exposure,
) -> str:
    """Resolution is pure, so the hash of what went in tells one receipt from another."""
    above = ",".join(one.receipt for one in within)
    named = "\n".join(f"{key}: {sets.patterns(patterns)}" for key, patterns in agent.selections().items())
    named += f"\n{exposure.facts()} {sets.patterns(exposure.always)}"
    facts = (snapshot.content, name, agent.model_dump_json(), named, str(depth), str(read_only), above)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
