"""The tools of one server as it lists them now, each held against its pin."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

from toolgrove.notation.json_schema import compiled
from toolgrove.pool import metadata
from toolgrove.pool.definition_lint import suspect
from toolgrove.pool.mcp.definition import as_given, is_for_apps_alone, needs_task, taken_over
from toolgrove.pool.mcp.effect_policy import EffectPolicy, told
from toolgrove.pool.mcp.era import Mirrors, mirrors
from toolgrove.pool.mcp.result import Valid
from toolgrove.pool.naming import is_foreign_legal, shortened
from toolgrove.pool.offer import Offer, Standing
from toolgrove.pool.pin_policy import Listed, PinPolicy
from toolgrove.pool.secrets import Secrets
from toolgrove.pool.source_names import SourceNames
from toolgrove.store.state import Pin, Pins
from toolgrove.types import Source, Tool, ToolSpec

log = logging.getLogger("toolgrove.pool")
_PROBLEMS = 3
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_TASK = "it runs only as a task (execution.taskSupport: required), which cannot be passed on from here"


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogEntry:
    """A tool that may be called, with what a call of it needs."""

    tool: Tool
    mirrors: Mirrors
    valid: Valid | None


class Catalog:
    """Keeps an entry as long as its definition stays the same, so that others may hold on to it.

    Definitions are checked and pins kept in a worker thread: a server with thousands of tools delays nobody.
    """

    def __init__(
        self,
        source: Source,
        *,
        names: SourceNames,
        effects: EffectPolicy,
        policy: PinPolicy,
        pins: Pins,
        secrets: Secrets,
    ) -> None:
        self._source = source
        self._names = names
        self._effects = effects
        self._policy = policy
        self._pins = pins
        self._secrets = secrets
        self._listed: dict[str, Listed] = {}
        self._entries: dict[str, CatalogEntry] = {}
        self._waiting: dict[str, Listed] = {}

    async def take(self, listed: Sequence[Any]) -> bool:
        """Take a new list; tells whether anything in it is new."""
        taken = await to_thread.run_sync(self._judged, listed, self._listed)
        changed = _hashes(taken) != _hashes(self._listed)
        self._listed = taken
        current = {one.whole for one in taken.values()}
        self._entries = {whole: entry for whole, entry in self._entries.items() if whole in current}
        return changed

    def _judged(self, listed: Sequence[Any], known: Mapping[str, Listed]) -> dict[str, Listed]:
        listed = self._secrets.scrub(listed)  # before a secret in it is pinned, shown or becomes a name
        names = Counter(tool["name"] for tool in listed if _is_named(tool))
        if len(listed) != names.total():
            log.warning("server %s lists %d tools without a name", self._source.name, len(listed) - names.total())
        early = self._policy.is_first_contact()
        taken: dict[str, Listed] = {}
        for tool in map(taken_over, filter(_is_named, listed)):
            name, whole = tool["name"], metadata.definition_hash(tool)
            before = known.get(name)
            if names[name] > 1:
                problem = f"the server lists it {names[name]} times"
                taken[name] = Listed(whole="", digest="", raw=tool, problems=(problem,))
            elif before is not None and before.whole == whole:
                taken[name] = before
            else:
                taken[name] = self._read(tool, whole, early)
        return taken

    def _read(self, tool: dict[str, Any], whole: str, early: bool) -> Listed:
        problems = metadata.check(tool)
        if problems:
            return Listed(whole=whole, digest=whole, raw=tool, problems=problems)
        found = suspect(tool)
        return Listed(
            whole=whole,
            digest=self._policy.digest(tool, suspicious=bool(found.instructing)),
            raw=tool,
            mentions=found.mentions,
            instructing=found.instructing,
            early=early,
        )

    def distrust(self, flags: Mapping[str, tuple[str, ...]]) -> bool:
        """Take in which definitions speak of the tools of others; whether one of them was not known to.

        What is known of one stays until the server describes it anew, though the other's tool may be gone by then.
        """
        news = {
            name: replace(one, spoken_of=found, digest=one.whole)  # nothing is left out of what is suspicious
            for name, found in flags.items()
            if (one := self._listed.get(name)) is not None and one.spoken_of != found
        }
        for name in news:
            self._entries.pop(self._listed[name].whole, None)  # it is made under the hash from before
        self._listed = self._listed | news
        return bool(news)

    def is_current(self, tool: Tool) -> bool:
        """Whether the server still says exactly the same about a tool."""
        listed = self._listed.get(tool.own_name)
        return listed is not None and listed.digest == tool.definition and not listed.problems

    def lists(self, own_name: str) -> bool:
        """Whether the server has a tool of that name at all."""
        return own_name in self._listed

    def entry(self, tool: Tool) -> CatalogEntry:
        """What a call of a current tool needs."""
        return self._entry(tool.own_name, self._listed[tool.own_name])

    async def offers(self) -> list[Offer]:
        """Every tool with its standing; the policy pins what needs no person."""
        listed = self._listed
        pins = await to_thread.run_sync(self._policy.judge, listed)
        offers = [self._offer(name, one, pins.get(name)) for name, one in listed.items()]
        waiting = (offer.own_name for offer in offers if offer.standing in ("pending", "quarantined"))
        self._waiting = {name: listed[name] for name in waiting}
        return offers

    async def accepted_meanwhile(self) -> bool:
        """Whether somebody, most likely in another process, accepted a definition that was offered as waiting."""
        return bool(self._waiting) and await to_thread.run_sync(self._policy.is_decided, self._waiting)

    def last_known(self, reason: str) -> list[Offer]:
        """The tools that the server had when it was last heard of."""
        names = list(self._listed) or list(self._pins.of(self._source.name))
        return [self._unusable(name, "unavailable", reason) for name in names]

    def _offer(self, name: str, one: Listed, pin: Pin | None) -> Offer:
        if self._names.left_out(name):
            return self._unusable(name, "masked", "")
        if one.problems:
            return self._unusable(name, "unvalidated", "; ".join(one.problems[:_PROBLEMS]))
        standing, reason = self._policy.standing(one, pin)
        if standing != "ready":
            return self._unusable(name, standing, reason, one.mentions)
        if needs_task(one.raw):
            return self._unusable(name, "unavailable", _TASK, one.mentions)
        tool = self._entry(name, one).tool
        return Offer(
            name=tool.spec.name,
            own_name=name,
            source=self._source.name,
            kind="mcp",
            tool=tool,
            mentions=one.mentions,
            also=self._names.also(name),
        )

    def _unusable(self, name: str, standing: Standing, reason: str, mentions: Mapping[str, str] | None = None) -> Offer:
        server, left_out = self._source.name, self._names.left_out(name)
        return Offer(
            name=self._shown(name),
            own_name=name,
            source=server,
            kind="mcp",
            standing="masked" if left_out else standing,
            reason=left_out or reason,
            mentions=mentions or {},
            also=self._names.also(name),
        )

    def _shown(self, own_name: str) -> str:
        """A name for the receipt, also of a tool whose own name cannot stand in the pool."""
        if is_foreign_legal(own_name):
            return self._names.name(own_name)
        digest = hashlib.sha256(own_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return shortened(f"{self._source.name}_{_ILLEGAL.sub('_', own_name)[:32]}_{digest}")

    def _entry(self, name: str, one: Listed) -> CatalogEntry:
        entry = self._entries.get(one.whole)
        if entry is None:
            entry = self._entries[one.whole] = self._made(name, one)
        return entry

    def _made(self, name: str, one: Listed) -> CatalogEntry:
        raw = one.raw
        hints = raw.get("annotations") or {}
        output_schema = raw.get("outputSchema")
        spec = ToolSpec(
            name=self._names.name(name),
            description=raw.get("description") or "",
            input_schema=raw["inputSchema"],
            output_schema=output_schema or {},
            annotations=told(hints),
            source=self._source.name,
            as_given=as_given(raw),
        )
        tool = Tool(
            spec=spec,
            source=self._source,
            mutates=self._effects.mutates(name, hints),
            reads_if=self._effects.reads_if(name),
            kind="mcp",
            own_name=name,
            definition=one.digest,
            for_apps=is_for_apps_alone(raw),
        )
        valid = None if output_schema is None else compiled(output_schema).is_valid
        return CatalogEntry(tool=tool, mirrors=mirrors(raw["inputSchema"]), valid=valid)


def _hashes(listed: Mapping[str, Listed]) -> dict[str, str]:
    return {name: one.whole for name, one in listed.items()}


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)
