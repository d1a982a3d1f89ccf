"""Definitions that are legal but suspicious: they speak to the model, or of tools that are not theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgrove.notation.json_value import texts
from toolgrove.pool.offer import Offer

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


class ToolNames:
    """Whose each name is.

    A full name is its holder's alone. A server's own name for a tool may be that of several, and who has one of that
    name itself is taken to mean it. Only a tool that an agent can have counts as another's: a name that nobody accepted
    takes nothing from anybody.
    """

    def __init__(self) -> None:
        self._full: dict[str, str] = {}
        self._own: dict[str, set[str]] = {}
        self._siblings: dict[str, set[str]] = {}

    @classmethod
    def of(cls, offers: Iterable[Offer]) -> ToolNames:
        """The names in a pool."""
        names = cls()
        for offer in offers:
            for name in (offer.name, *offer.also):
                names.add(offer.source, offer.own_name, name, is_ready=offer.tool is not None)
        return names

    def add(self, source: str, own_name: str, name: str, *, is_ready: bool) -> None:
        """Take in one tool."""
        self._siblings.setdefault(source, set()).update((own_name, name))
        if is_ready:
            self._full.setdefault(name, source)
            self._own.setdefault(own_name, set()).add(source)

    def others(self, source: str, words: Iterable[str]) -> list[str]:
        """Those of the words that name a tool of somebody else."""
        return sorted(word for word in words if self._is_anothers(source, word))

    def _is_anothers(self, source: str, word: str) -> bool:
        if self._full.get(word, source) != source:
            return True
        return word in self._own and word not in self._siblings.get(source, ())


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """What a definition says that a description need not say."""

    instructing: tuple[str, ...]
    mentions: Mapping[str, str]


def suspect(definition: Mapping[str, Any]) -> Suspicion:
    """Read every text of a definition with distrust; its name says nothing yet."""
    instructing: list[str] = []
    mentions: dict[str, str] = {}
    for path, text in texts({key: value for key, value in definition.items() if key != "name"}):
        lower = text.lower()
        found = _INSTRUCTING.search(lower) if any(word in lower for word in _OPENINGS) else None
        if found is not None:
            instructing.append(f"{path} reads like an instruction to the model: {found.group()[:_QUOTED]!r}")
        for name in _NAME.findall(text):
            mentions.setdefault(name, path)
    return Suspicion(instructing=tuple(instructing), mentions=mentions)


def spoken_of(source: str, mentions: Mapping[str, str], names: ToolNames) -> tuple[str, ...]:
    """Which tools of others a definition speaks of, in words."""
    return tuple(f"{mentions[name]} speaks of {name!r}, another's tool" for name in names.others(source, mentions))


def flags(source: str, definition: Mapping[str, Any], names: ToolNames) -> list[str]:
    """All that is suspicious in a definition of this source."""
    found = suspect(definition)
    return [*found.instructing, *spoken_of(source, found.mentions, names)]


def mentioned(offers: Iterable[Offer]) -> dict[str, dict[str, tuple[str, ...]]]:
    """By source, and by its own name, which definitions speak of the tools of others."""
    offers = list(offers)
    names = ToolNames.of(offers)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for offer in offers:
        spoken = spoken_of(offer.source, offer.mentions, names)
        if spoken:
            found.setdefault(offer.source, {})[offer.own_name] = spoken
    return found
