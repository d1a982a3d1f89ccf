"""From the pool and an agent's definition to the tools it has: a pure function with a receipt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolgrove.config import AgentConfig
from toolgrove.errors import closest
from toolgrove.pool.globs import Globs, is_exact
from toolgrove.pool.offer import Offer
from toolgrove.pool.receipt import Receipt, Verdict
from toolgrove.pool.snapshot import Snapshot
from toolgrove.types import Ceiling, Tool, ToolSpec

SPAWN = "spawn_agents"
_HINTS = 3
COORDINATION = frozenset((SPAWN, "list_available_agents"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """What an agent may use or hand on, and never more than the one that spawned it."""

    agent: str
    usable: frozenset[str]
    delegable: Globs
    within: Ceiling | None

    def covers(self, name: str) -> bool:
        """Whether a sub-agent may have the tool."""
        own = name in self.usable or self.delegable.match(name) is not None
        return own and (self.within is None or self.within.covers(name))

    def mark(self) -> str:
        """A text that tells this ceiling from others."""
        own = f"{self.agent}:{','.join(sorted(self.usable))}:{','.join(self.delegable.patterns)}"
        return own if self.within is None else f"{own}\0{self.within.mark()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolset:
    """The tools of an agent, fixed for an execution.

    `callable` holds what the chain lets through to its role step: the visible tools, and those that only the role
    or read-only mode keeps away. `approvals` tells by which rule a tool needs one.
    """

    specs: tuple[ToolSpec, ...]
    names: tuple[str, ...]
    callable: Mapping[str, Tool]
    approvals: Mapping[str, str]
    reach: Reach
    receipt: Receipt


def resolve(
    snapshot: Snapshot,
    name: str,
    agent: AgentConfig,
    *,
    depth: int = 0,
    read_only: bool = False,
    within: Ceiling | None = None,
) -> Toolset:
    """The tools of an agent at a depth, and why."""
    decide = _Judge(snapshot, agent, depth, read_only or agent.read_only, within).decide
    verdicts: dict[str, Verdict] = {}
    visible: dict[str, Tool] = {}
    kept_away: dict[str, Tool] = {}
    for tool_name, offer in snapshot.offers.items():
        verdict = verdicts[tool_name] = decide(offer)
        if offer.tool is None:
            continue
        if verdict.verdict == "granted":
            visible[tool_name] = offer.tool
        elif verdict.rule in _BY_ROLE:
            kept_away[tool_name] = offer.tool
    approvals = {each: tool.approval for each, tool in visible.items() if tool.approval is not None}
    approvals.update((each, f"approve: {pattern}") for each, pattern in Globs(agent.approve).matches(visible).items())
    reach = Reach(agent=name, usable=frozenset(visible), delegable=Globs(agent.may_delegate), within=within)
    receipt = Receipt(
        agent=name,
        depth=depth,
        revision=snapshot.revision,
        hash=_fingerprint(snapshot, name, agent, depth, read_only, within),
        verdicts=verdicts,
        sources=snapshot.sources,
        rejected=snapshot.rejected,
        warnings=tuple(_warnings(snapshot, name, agent, depth, verdicts, bool(visible))),
    )
    return Toolset(
        specs=tuple(tool.spec for tool in visible.values()),
        names=tuple(visible),
        callable={**visible, **kept_away},
        approvals=approvals,
        reach=reach,
        receipt=receipt,
    )


_READ_ONLY = "read-only mode: the tool changes something"
_READER = "role 'reader': the tool changes something"
_BY_ROLE = frozenset((_READ_ONLY, _READER))


class _Judge:
    """The rules of one agent, in the order in which they decide."""

    def __init__(
        self, snapshot: Snapshot, agent: AgentConfig, depth: int, read_only: bool, within: Ceiling | None
    ) -> None:
        self._named = Globs(agent.tools).matches(snapshot.offers)
        self._denied = Globs(agent.deny).matches(snapshot.offers)
        self._masks = None if agent.mcp is None else {s: Globs(chosen.mask) for s, chosen in agent.mcp.items()}
        self._by_role = _READ_ONLY if read_only else _READER if agent.role == "reader" else None
        self._depth_rule = _depth_rule(agent, depth)
        self._within = within
        self._granted: dict[tuple[str, str], Verdict] = {}
        self._unnamed: dict[str, Verdict] = {}

    def decide(self, offer: Offer) -> Verdict:
        """What becomes of an offer."""
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
        if offer.standing != "ready" or offer.tool is None:
            return Verdict(offer.standing if offer.standing != "ready" else "unavailable", offer.reason, source)
        if self._depth_rule is not None and name in COORDINATION:
            return Verdict("restricted", self._depth_rule, source)
        if self._within is not None and not self._within.covers(name):
            parent = self._within.agent
            return Verdict("restricted", f"agent {parent!r} can neither use it nor hand it on (mayDelegate)", source)
        if self._by_role is not None and offer.tool.mutates:
            return Verdict("restricted", self._by_role, source)
        return self._granted.get((pattern, source)) or self._given(pattern, source)

    def _not_named(self, source: str) -> Verdict:
        self._unnamed[source] = verdict = Verdict("denied", "no pattern in tools names it", source)
        return verdict

    def _given(self, pattern: str, source: str) -> Verdict:
        self._granted[pattern, source] = verdict = Verdict("granted", f"tools: {pattern}", source)
        return verdict


def _depth_rule(agent: AgentConfig, depth: int) -> str | None:
    if depth <= 0:
        return None
    if depth >= agent.max_depth:
        return f"maxDepth {agent.max_depth} is reached at depth {depth}"
    if not Globs(agent.tools).names(SPAWN):
        return f"a sub-agent has it only if tools lists {SPAWN!r} by its exact name"
    return None


def _warnings(
    snapshot: Snapshot, name: str, agent: AgentConfig, depth: int, verdicts: Mapping[str, Verdict], has_tools: bool
) -> Iterator[str]:
    if depth >= agent.max_depth > 0 and depth and Globs(agent.tools).match(SPAWN):
        yield f"Agent {name!r} is at depth {depth} of maxDepth {agent.max_depth}: {SPAWN} is removed."
    missing = [pattern for pattern in agent.tools if is_exact(pattern) and pattern not in verdicts]
    for at, pattern in enumerate(missing):
        near = closest(pattern, verdicts) if at < _HINTS else None  # each one looks at every name
        hint = f" Did you mean {near!r}?" if near else ""
        yield f"Agent {name!r} lists tool {pattern!r}, which is not in the pool; it is skipped.{hint}"
    for server in agent.mcp or ():
        if server not in snapshot.sources:
            yield f"Agent {name!r} selects MCP server {server!r}, which the project does not have."
    for tool, found in snapshot.flags.items():
        if verdicts[tool].verdict == "granted":
            yield f"{tool} is worth a look before an agent relies on it: {'; '.join(found)}."
    if not has_tools:
        yield (
            f"Agent {name!r} ends up with no tools at all: {_why_none(agent, verdicts)} "
            f"'toolgrove explain {name}' tells why for each tool."
        )


def _why_none(agent: AgentConfig, verdicts: Mapping[str, Verdict]) -> str:
    if not agent.tools:
        return "its definition lists none (tools is absent or empty)."
    counts: dict[str, int] = {}
    for verdict in verdicts.values():
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) + "."


def _fingerprint(
    snapshot: Snapshot, name: str, agent: AgentConfig, depth: int, read_only: bool, within: Ceiling | None
) -> str:
    """Resolution is pure, so the hash of what went in tells one receipt from another."""
    above = within.mark() if within is not None else ""
    facts = (snapshot.content, name, agent.model_dump_json(), str(depth), str(read_only), above)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
