"""The tools of one server as it lists them now, each held against its pin."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from toolgrove.pool import metadata
from toolgrove.pool.mcp.era import Mirrors, mirrors
from toolgrove.pool.mcp.result import Valid
from toolgrove.pool.naming import is_foreign_legal, pool_name, shortened
from toolgrove.pool.offer import Offer, Standing
from toolgrove.pool.secrets import Secrets
from toolgrove.store.pins import Pin, Pins
from toolgrove.tree.json_schema import compiled
from toolgrove.types import Annotations, Source, Tool, ToolSpec

log = logging.getLogger("toolgrove.pool")
_PROBLEMS = 3
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A tool as the server lists it; without a problem it may enter the pool."""

    digest: str
    raw: Mapping[str, Any]
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A tool that may be called, with what a call of it needs."""

    tool: Tool
    mirrors: Mirrors
    valid: Valid | None


class Catalog:
    """Keeps an entry as long as its definition stays the same, so that others may hold on to it.

    Definitions are checked and pins kept in a worker thread: a server with thousands of tools delays nobody.
    """

    def __init__(self, source: Source, *, pins: Pins, secrets: Secrets) -> None:
        self._source = source
        self._pins = pins
        self._secrets = secrets
        self._listed: dict[str, Listed] = {}
        self._entries: dict[str, Entry] = {}

    async def take(self, listed: Sequence[Any]) -> bool:
        """Take a new list; tells whether anything in it is new."""
        taken = await to_thread.run_sync(self._judged, listed, self._listed)
        changed = _digests(taken) != _digests(self._listed)
        self._listed = taken
        current = {one.digest for one in taken.values()}
        self._entries = {digest: entry for digest, entry in self._entries.items() if digest in current}
        return changed

    def _judged(self, listed: Sequence[Any], known: Mapping[str, Listed]) -> dict[str, Listed]:
        listed = self._secrets.scrub(listed)  # before a secret in it is pinned, shown or becomes a name
        names = Counter(tool["name"] for tool in listed if _is_named(tool))
        if len(listed) != names.total():
            log.warning("server %s lists %d tools without a name", self._source.name, len(listed) - names.total())
        taken: dict[str, Listed] = {}
        for tool in filter(_is_named, listed):
            name, digest = tool["name"], metadata.definition_hash(tool)
            before = known.get(name)
            if names[name] > 1:
                taken[name] = Listed(digest="", raw=tool, problems=(f"the server lists it {names[name]} times",))
            elif before is not None and before.digest == digest:
                taken[name] = before
            else:
                taken[name] = Listed(digest=digest, raw=tool, problems=tuple(metadata.check(tool)))
        return taken

    def is_current(self, tool: Tool) -> bool:
        """Whether the server still says exactly the same about a tool."""
        listed = self._listed.get(tool.own_name)
        return listed is not None and listed.digest == tool.definition and not listed.problems

    def lists(self, own_name: str) -> bool:
        """Whether the server has a tool of that name at all."""
        return own_name in self._listed

    def entry(self, tool: Tool) -> Entry:
        """What a call of a current tool needs."""
        return self._entry(tool.own_name, self._listed[tool.own_name])

    async def offers(self) -> list[Offer]:
        """Every tool with its standing; one that was never seen before is pinned as it is."""
        listed = self._listed
        pins = await to_thread.run_sync(self._pinned, listed)
        return [self._offer(name, one, pins.get(name)) for name, one in listed.items()]

    def last_known(self, reason: str) -> list[Offer]:
        """The tools that the server had when it was last heard of."""
        names = list(self._listed) or list(self._pins.of(self._source.name))
        return [self._unusable(name, "unavailable", reason) for name in names]

    def _pinned(self, listed: Mapping[str, Listed]) -> Mapping[str, Pin]:
        """The pins as they were, brought up to date with what the server says now."""
        server = self._source.name
        pins = self._pins.of(server)
        for name, one in listed.items():
            pin = pins.get(name)
            if one.problems:
                continue
            if pin is None or not pin.hash:
                self._pins.pin(server, name, one.digest, one.raw)
            elif pin.hash == one.digest and pin.changed:
                self._pins.saw(server, name, one.digest, one.raw)
            elif pin.hash != one.digest and pin.seen_hash != one.digest:
                log.warning("server %s changed the definition of %s: it is quarantined", server, name)
                self._pins.saw(server, name, one.digest, one.raw)
        return pins

    def _offer(self, name: str, one: Listed, pin: Pin | None) -> Offer:
        if one.problems:
            return self._unusable(name, "unvalidated", "; ".join(one.problems[:_PROBLEMS]))
        if pin is not None and pin.hash and pin.hash != one.digest:
            how = "its definition changed since it was pinned: 'toolgrove pins' shows how and re-pins it"
            return self._unusable(name, "quarantined", how)
        tool = self._entry(name, one).tool
        return Offer(name=tool.spec.name, own_name=name, source=self._source.name, kind="mcp", tool=tool)

    def _unusable(self, name: str, standing: Standing, reason: str) -> Offer:
        server = self._source.name
        return Offer(
            name=_shown(server, name), own_name=name, source=server, kind="mcp", standing=standing, reason=reason
        )

    def _entry(self, name: str, one: Listed) -> Entry:
        entry = self._entries.get(one.digest)
        if entry is None:
            entry = self._entries[one.digest] = self._made(name, one)
        return entry

    def _made(self, name: str, one: Listed) -> Entry:
        raw = one.raw
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
            definition=one.digest,
        )
        valid = None if output_schema is None else compiled(output_schema).is_valid
        return Entry(tool=tool, mirrors=mirrors(raw["inputSchema"]), valid=valid)


def _digests(listed: Mapping[str, Listed]) -> dict[str, str]:
    return {name: one.digest for name, one in listed.items()}


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _shown(server: str, own_name: str) -> str:
    """A name for the receipt, also of a tool whose own name cannot stand in the pool."""
    if is_foreign_legal(own_name):
        return pool_name(server, own_name)
    digest = hashlib.sha256(own_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return shortened(f"{server}_{_ILLEGAL.sub('_', own_name)[:32]}_{digest}")
