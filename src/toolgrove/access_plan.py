"""What to write into the project file so that an agent has a tool, has to ask before it runs, or does not see it.

Only the access keys of one agent are ever changed, and the text of the file is compared before and after to hold that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toolgrove.config import AgentConfig, Config, ConfigError
from toolgrove.config.document import parse
from toolgrove.config.yaml_edit import CannotEdit, Way, YamlText
from toolgrove.errors import Conflict, InvalidArgument
from toolgrove.pool.offer import Offer
from toolgrove.pool.resolve import Toolset

Want = Literal["grant", "ask", "hide"]
ACCESS_KEYS = frozenset(("tools", "deny", "approve", "mcp", "role", "readOnly", "read_only", "apps"))
"""The keys of an agent that may be changed: none starts a program, names an address or holds a secret."""
_MOST_STEPS = 8
_ELSEWHERE = frozenset(("unavailable", "quarantined", "pending", "unvalidated"))
"""Verdicts that say nothing of access: the tool itself cannot be offered now."""
_CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """A tool that the agent would stand to otherwise; `asks` is a grant whose every call a person approves."""

    tool: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessPlan:
    """Another text of the file, and what it means."""

    text: str
    steps: tuple[str, ...]
    effects: tuple[Effect, ...]
    diff: str


class _Step(NamedTuple):
    said: str
    edit: Callable[[YamlText], YamlText]


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessPlanner:
    """Plans changes of one file; `outlook` tells what an agent would be given by a configuration."""

    path: Path
    offers: Mapping[str, Offer]
    outlook: Callable[[Config, str], Toolset]

    def plan(self, text: str, agent: str, tool: str, want: Want) -> AccessPlan:
        """The change that gives an agent what is wanted; a refusal says why it is not made from here."""
        if self.path.suffix.lower() == ".json":
            raise _by_hand("A project file in JSON is not edited from here.")
        before = self._parsed(text, agent)
        config, now, steps = before, YamlText(text), list[str]()
        while not self._is_so(config, agent, tool, want, begun=bool(steps)):
            if len(steps) == _MOST_STEPS:
                raise _by_hand(f"No change of agents.{agent} does that.")
            step = self._next(config, agent, tool, want)
            try:
                now = step.edit(now)
            except CannotEdit as problem:
                raise _by_hand(f"The file is written in a way that is not edited from here: {problem}.") from None
            changed = self._parsed(now.text, agent)
            if changed == config:
                raise _by_hand(f"The file takes agents.{agent} from elsewhere, such as an alias.")
            config = changed
            steps.append(step.said)
        check_only_access(text, now.text, self.path, agent)
        return AccessPlan(
            text=now.text,
            steps=tuple(steps),
            effects=self._effects(before, config, agent),
            diff=_diff(text, now, agent),
        )

    def _parsed(self, text: str, agent: str) -> Config:
        try:
            config = Config.parse(text, self.path)
        except ConfigError as problem:
            raise Conflict(
                f"The project file has an error; mend it first. {problem.problems[0]}", reason="file"
            ) from None
        if agent not in (parse(text, self.path).content.get("agents") or {}):
            raise _by_hand(f"The file has no section agents.{agent}.")
        return config

    def _is_so(self, config: Config, agent: str, tool: str, want: Want, *, begun: bool) -> bool:
        toolset, definition = self.outlook(config, agent), config.agents[agent]
        verdict = toolset.receipt[tool].verdict
        if want == "hide":
            return verdict in ("denied", "masked")
        if verdict in _ELSEWHERE and begun:  # as far as access goes, all is done
            return want == "grant" or tool in definition.approve
        return verdict == "granted" and (tool in toolset.approvals) == (want == "ask")

    def _next(self, config: Config, agent: str, tool: str, want: Want) -> _Step:
        toolset, definition = self.outlook(config, agent), config.agents[agent]
        verdict, rule, *_ = toolset.receipt[tool]
        top = ("agents", agent)
        if want == "hide":
            return self._hiding(definition, top, self.offers[tool])
        if verdict in _ELSEWHERE and not (want == "ask" and tool not in definition.approve):
            raise _by_hand(f"Its definition or its source is the problem: {rule}. See Sources.")
        if verdict == "granted" or verdict in _ELSEWHERE:
            if want == "ask":
                return _added(top, "approve", tool)
            return _no_longer_asks(toolset.approvals[tool], definition, top)
        return self._opening(config, definition, top, tool, rule)

    def _opening(self, config: Config, definition: AgentConfig, top: Way, tool: str, rule: str) -> _Step:
        """The step against the rule that keeps a tool away."""
        offer = self.offers[tool]
        _, _, pattern = rule.partition(": ")
        if rule.startswith("deny: "):
            return _removed(top, "deny", pattern, definition.deny)
        if rule == "no pattern in tools names it":
            return _added(top, "tools", tool)
        if rule.startswith("mcp does not select"):
            way = (*top, "mcp", offer.source)
            return _Step(f"Select server {offer.source} in mcp.", lambda text: text.with_mapping(way))
        if rule.startswith(f"mcp.{offer.source}.mask: ") and definition.mcp is not None:
            return _removed((*top, "mcp", offer.source), "mask", pattern, definition.mcp[offer.source].mask)
        if rule.startswith("role 'reader':"):
            return _Step("Make its role editor, so that it can change things.", _set(top, "role", "editor"))
        if rule.startswith("read-only mode:") and definition.read_only:
            return _Step("Take it out of read-only mode.", lambda text: _writable(text, top))
        if "apps: true" in rule:
            return _Step("Give it the tools of MCP Apps.", _set(top, "apps", True))
        raise _by_hand(f"No key of agents.{top[-1]} decides that: {rule}.")

    def _hiding(self, definition: AgentConfig, top: Way, offer: Offer) -> _Step:
        if offer.name in definition.tools:
            return _removed(top, "tools", offer.name, definition.tools)
        if offer.kind == "mcp" and definition.mcp is not None and offer.source in definition.mcp:
            return _added((*top, "mcp", offer.source), "mask", offer.own_name)
        return _added(top, "deny", offer.name)

    def _effects(self, before: Config, after: Config, agent: str) -> tuple[Effect, ...]:
        old, new = (_standings(self.outlook(config, agent)) for config in (before, after))
        return tuple(
            Effect(tool=tool, before=was, after=new[tool])
            for tool, was in old.items()
            if tool in new and new[tool] != was
        )


def check_only_access(before: str, after: str, path: Path, agent: str) -> None:
    """Hold that two texts of the file differ in access keys of one agent, and in nothing else."""
    was, now = (parse(text, path).content for text in (before, after))
    if _without_access(was, agent) != _without_access(now, agent):
        raise _by_hand("The change would touch more than the access of this agent; an alias may share its section.")


def _without_access(content: Any, agent: str) -> Any:
    agents = dict(content.get("agents") or {})
    own = agents.get(agent)
    if isinstance(own, dict):
        agents[agent] = {key: value for key, value in own.items() if key not in ACCESS_KEYS}
    return {**content, "agents": agents}


def _standings(toolset: Toolset) -> dict[str, str]:
    return {
        tool: "asks" if tool in toolset.approvals and verdict.verdict == "granted" else verdict.verdict
        for tool, verdict in toolset.receipt.items()
    }


def _added(top: Way, key: str, item: str) -> _Step:
    return _Step(f"Add {item} to {key}.", lambda text: text.with_item((*top, key), item))


def _removed(top: Way, key: str, pattern: str, items: tuple[str, ...]) -> _Step:
    """A pattern of a set is named with the set that it is in; the set is what the list holds."""
    item = pattern if pattern in items else pattern.partition(" (")[0]
    if item not in items:
        raise _by_hand(f"{key} of this agent does not hold {pattern} itself.")
    return _Step(f"Take {item} out of {key}.", lambda text: text.without_item((*top, key), item))


def _no_longer_asks(rule: str, definition: AgentConfig, top: Way) -> _Step:
    kind, _, pattern = rule.partition(": ")
    if kind != "approve" or " of agent " in pattern:
        raise _by_hand(f"Its source asks for an approval, not this agent: {rule}.")
    return _removed(top, "approve", pattern, definition.approve)


def _set(top: Way, key: str, value: bool | str) -> Callable[[YamlText], YamlText]:
    return lambda text: text.with_value((*top, key), value)


def _writable(text: YamlText, top: Way) -> YamlText:
    """The text with read-only mode off, in whichever spelling the file has it."""
    older = (*top, "read_only")
    return text.with_value(older if text.has(older) else (*top, "readOnly"), False)


def _by_hand(why: str) -> InvalidArgument:
    return InvalidArgument(f"{why} Change the project file by hand.", reason="not_editable")


def _diff(before: str, after: YamlText, agent: str) -> str:
    """What changes, line by line, within the section of the agent: what stands around it is not shown."""
    way = ("agents", agent)
    begin, end = YamlText(before).lines_of(way)
    _, new_end = after.lines_of(way)
    old, new = before.split("\n")[begin:end], after.text.split("\n")[begin:new_end]
    lines = list(difflib.unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
    return "\n".join(_HUNK.sub(lambda hunk: _moved(hunk, begin), line) for line in lines)


def _moved(hunk: re.Match[str], by: int) -> str:
    return f"@@ -{int(hunk[1]) + by}{hunk[2] or ''} +{int(hunk[3]) + by}{hunk[4] or ''} @@"
