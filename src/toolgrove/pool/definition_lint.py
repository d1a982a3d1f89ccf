"""Definitions that are legal but worth a look by a person: a hint, never a gate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from toolgrove.notation.json_value import texts
from toolgrove.pool.offer import Offer
from toolgrove.types import Tool

_INSTRUCTING = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|earlier|above|other|all|system)\b.{0,20}"
    r"\b(?:instructions?|prompts?|rules?|messages?|context)\b"
    r"|\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|mention|inform|reveal|show)(?:ing)?\b.{0,20}\buser\b"
    r"|<\s*/?\s*(?:important|system|instructions?|secret)\s*>"
    r"|\b(?:before|instead of)\b.{0,20}\b(?:using|calling)\b.{0,20}\b(?:any|other|another|all)\b.{0,20}\btools?\b"
    r"|\bsystem prompt\b|~/\.ssh|\bid_rsa\b",
    re.DOTALL,
)
_OPENINGS = (  # one of them is in each of these phrases, and looking for them is much cheaper
    *("ignore", "disregard", "forget", "override", "do not", "don't", "never", "without", "before", "instead of"),
    *("<", "system prompt", "~/.ssh", "id_rsa"),
)
# A name of one plain word, such as `search`, is found in every second description.
_NAME = re.compile(r"[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)+")
_QUOTED = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """What a definition says that a description need not say."""

    instructing: tuple[str, ...]
    mentions: Mapping[str, str]

    def flags(self, other_names: Iterable[str]) -> list[str]:
        """The same in words, held against the names of tools that belong to others."""
        spoken = sorted(self.mentions.keys() & set(other_names))
        return [*self.instructing, *(f"{self.mentions[name]} speaks of {name!r}, another's tool" for name in spoken)]


def suspect(definition: Mapping[str, Any]) -> Suspicion:
    """Read every text of a definition with distrust."""
    instructing: list[str] = []
    mentions: dict[str, str] = {}
    for path, text in texts(definition):
        lower = text.lower()
        found = _INSTRUCTING.search(lower) if any(word in lower for word in _OPENINGS) else None
        if found is not None:
            instructing.append(f"{path} reads like an instruction to the model: {found.group()[:_QUOTED]!r}")
        for name in _NAME.findall(text):
            mentions.setdefault(name, path)
    return Suspicion(instructing=tuple(instructing), mentions=mentions)


class Watch:
    """Reads each foreign definition once, and holds it against every pool that it stands in."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], Suspicion] = {}

    async def read(self, offers: Iterable[Offer]) -> None:
        """Read what is new in a worker thread: a hostile server can write so that it takes seconds."""
        new = [tool for tool in _foreign(offers) if _mark(tool) not in self._read]
        if new:
            self._read |= await to_thread.run_sync(_suspicions, new, abandon_on_cancel=True)

    def flags(self, offers: Mapping[str, Offer]) -> dict[str, tuple[str, ...]]:
        """What is worth a look, by tool; only MCP servers write their definitions themselves."""
        names = {name: offer.source for offer in offers.values() for name in (offer.own_name, offer.name)}
        read: dict[tuple[str, str], Suspicion] = {}
        flagged = {}
        for tool in _foreign(offers.values()):
            suspicion = read[_mark(tool)] = self._read.get(_mark(tool)) or _suspicion(tool)
            source = tool.spec.source
            others = (word for word in suspicion.mentions if names.get(word, source) != source)
            found = suspicion.flags(others)
            if found:
                flagged[tool.spec.name] = tuple(found)
        self._read = read
        return flagged


def _foreign(offers: Iterable[Offer]) -> Iterator[Tool]:
    return (offer.tool for offer in offers if offer.kind == "mcp" and offer.tool is not None)


def _mark(tool: Tool) -> tuple[str, str]:
    return tool.spec.name, tool.definition


def _suspicions(tools: Iterable[Tool]) -> dict[tuple[str, str], Suspicion]:
    return {_mark(tool): _suspicion(tool) for tool in tools}


def _suspicion(tool: Tool) -> Suspicion:
    spec = tool.spec
    shown = {"description": spec.description, "inputSchema": spec.input_schema, "outputSchema": spec.output_schema}
    return suspect(shown)
