"""The tools of one server as it lists them now, each held against its pin."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from toolgrove.pool import metadata
from toolgrove.pool.mcp.era import Mirrors, mirrors
from toolgrove.pool.mcp.result import Valid
from toolgrove.pool.naming import is_foreign_legal, pool_name, shortened
from toolgrove.pool.offer import Offer, Standing
from toolgrove.pool.secrets import Secrets
from toolgrove.store.pins import Pins
from toolgrove.types import Annotations, Source, Tool, ToolSpec

log = logging.getLogger("toolgrove.pool")
_PROBLEMS = 3
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A tool that may be called, with what a call of it needs."""

    tool: Tool
    mirrors: Mirrors
    valid: Valid | None


class Catalog:
    """Keeps an entry as long as its definition stays the same, so that others may hold on to it."""

    def __init__(self, source: Source, *, pins: Pins, secrets: Secrets) -> None:
        self._source = source
        self._pins = pins
        self._secrets = secrets
        self._listed: dict[str, tuple[str, Mapping[str, Any], list[str]]] = {}
        self._unnamed = 0
        self._entries: dict[str, Entry] = {}

    def take(self, listed: Sequence[Any]) -> bool:
        """Take a new list; tells whether anything in it is new."""
        listed = self._secrets.scrub(listed)  # before a secret in it is pinned, shown or becomes a name
        names = Counter(tool["name"] for tool in listed if _is_named(tool))
        taken: dict[str, tuple[str, Mapping[str, Any], list[str]]] = {}
        for tool in filter(_is_named, listed):
            name, digest = tool["name"], metadata.definition_hash(tool)
            known = self._listed.get(name)
            if names[name] > 1:
                taken[name] = ("", tool, [f"the server lists it {names[name]} times"])
            elif known is not None and known[0] == digest:
                taken[name] = known
            else:
                taken[name] = (digest, tool, metadata.check(tool))
        if len(listed) != names.total():
            log.warning("server %s lists %d tools without a name", self._source.name, len(listed) - names.total())
        changed = {name: one[0] for name, one in taken.items()} != {name: one[0] for name, one in self._listed.items()}
        self._listed = taken
        self._entries = {name: entry for name, entry in self._entries.items() if self.is_current(entry.tool)}
        return changed

    def is_current(self, tool: Tool) -> bool:
        """Whether the server still says exactly the same about a tool."""
        listed = self._listed.get(tool.own_name)
        return listed is not None and listed[0] == tool.definition and not listed[2]

    def lists(self, own_name: str) -> bool:
        """Whether the server has a tool of that name at all."""
        return own_name in self._listed

    def entry(self, tool: Tool) -> Entry:
        """What a call of a current tool needs."""
        entry = self._entries.get(tool.own_name)
        if entry is None:  # its pin was taken away after it was resolved; the definition is still the same
            entry = self._entries[tool.own_name] = self._made(tool.own_name)
        return entry

    def offers(self) -> list[Offer]:
        """Every tool with its standing; one that was never seen before is pinned as it is."""
        pins = self._pins.of(self._source.name)
        return [self._offer(name, pins.get(name)) for name in self._listed]

    def last_known(self, reason: str) -> list[Offer]:
        """The tools that the server had when it was last heard of."""
        names = list(self._listed) or list(self._pins.of(self._source.name))
        return [self._unusable(name, "unavailable", reason) for name in names]

    def _offer(self, name: str, pin: Any) -> Offer:
        digest, raw, problems = self._listed[name]
        server = self._source.name
        if problems:
            return self._unusable(name, "unvalidated", "; ".join(problems[:_PROBLEMS]))
        if pin is None or not pin.hash:
            self._pins.pin(server, name, digest, raw)
        elif pin.hash != digest:
            if pin.seen_hash != digest:
                log.warning("server %s changed the definition of %s: it is quarantined", server, name)
                self._pins.saw(server, name, digest, raw)
            return self._unusable(
                name,
                "quarantined",
                "its definition changed since it was pinned: 'toolgrove pins' shows how and re-pins it",
            )
        elif pin.changed:
            self._pins.saw(server, name, digest, raw)
        if name not in self._entries:
            self._entries[name] = self._made(name)
        tool = self._entries[name].tool
        return Offer(name=tool.spec.name, own_name=name, source=server, kind="mcp", tool=tool)

    def _unusable(self, name: str, standing: Standing, reason: str) -> Offer:
        server = self._source.name
        return Offer(
            name=_shown(server, name), own_name=name, source=server, kind="mcp", standing=standing, reason=reason
        )

    def _made(self, name: str) -> Entry:
        digest, raw, _ = self._listed[name]
        hints = raw.get("annotations") or {}
        output_schema = raw.get("outputSchema")
        annotations = Annotations(
            readonly=hints.get("readOnlyHint") is True,
            destructive=hints.get("destructiveHint") is True,
            idempotent=hints.get("idempotentHint") is True,
            open_world=hints.get("openWorldHint") is not False,
        )
        spec = ToolSpec(
            name=pool_name(self._source.name, name),
            description=raw.get("description") or "",
            input_schema=raw["inputSchema"],
            output_schema=output_schema or {},
            annotations=annotations,
            source=self._source.name,
        )
        tool = Tool(
            spec=spec,
            source=self._source,
            mutates=annotations.destructive or hints.get("readOnlyHint") is False,
            kind="mcp",
            own_name=name,
            definition=digest,
        )
        valid = (
            None if output_schema is None else jsonschema_rs.validator_for(dict(output_schema), offline=True).is_valid
        )
        return Entry(tool=tool, mirrors=mirrors(raw["inputSchema"]), valid=valid)


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _shown(server: str, own_name: str) -> str:
    """A name for the receipt, also of a tool whose own name cannot stand in the pool."""
    if is_foreign_legal(own_name):
        return pool_name(server, own_name)
    digest = hashlib.sha256(own_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return shortened(f"{server}_{_ILLEGAL.sub('_', own_name)[:32]}_{digest}")
