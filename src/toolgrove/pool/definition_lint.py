"""Definitions that are legal but suspicious: they speak to the model, or of tools that are not theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgrove.notation.json_value import texts
from toolgrove.pool.offer import Offer

_PHRASES: tuple[tuple[tuple[int, str], ...], ...] = (
    (
        (0, "ignore disregard forget override"),
        (40, "previous prior earlier above other all system"),
        (20, "instruction instructions prompt prompts rule rules message messages context"),
    ),
    (
        (0, "do_not don't never without"),
        (20, "tell telling mention mentioning inform informing reveal revealing show showing"),
        (20, "user"),
    ),
    ((0, "before instead_of"), (20, "using calling"), (20, "any other another all"), (20, "tool tools")),
)
"""Words that follow one another, each after at most so many characters; `_` stands for a space."""
_LITERAL = ("~/.ssh", "id_rsa")
_TAGS = frozenset(("important", "system", "instruction", "instructions", "secret"))
_ROLES: dict[str, list[tuple[int, int, int]]] = {}
"""By word: in which phrase it is which word, and how many characters may stand before it."""
for _number, _phrase in enumerate(_PHRASES):
    for _place, (_gap, _words) in enumerate(_phrase):
        for _word in _words.split():
            _ROLES.setdefault(_word.replace("_", " "), []).append((_number, _place, _gap))
# A tag is read to its end at once, and nothing is read twice: that keeps the time linear.
_TOKEN = re.compile(
    r"(?P<opens><\s*+/?+\s*+)|\b(?P<word>"
    + "|".join(sorted({*_ROLES, *_TAGS}, key=len, reverse=True))
    + r")\b(?P<closes>\s*+>)?"
)
_OPENINGS = (  # one of them is in each of these phrases, and looking for them is much cheaper
    *("ignore", "disregard", "forget", "override", "do not", "don't", "never", "without", "before", "instead of"),
    *("<", "system prompt", *_LITERAL),
)
# A name of one plain word, such as `search`, is found in every second description. Only the beginning of a word is
# looked at, and none is given back: a long word is read once.
_NAME = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[_-]++[A-Za-z0-9]++)++")
_LONGEST = 128
"""No tool has a longer name."""
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
        found = _instruction(lower) if any(word in lower for word in _OPENINGS) else None
        if found is not None:
            instructing.append(f"{path} reads like an instruction to the model: {lower[found][:_QUOTED]!r}")
        for name in _NAME.findall(text):
            if len(name) <= _LONGEST:
                mentions.setdefault(name, path)
    return Suspicion(instructing=tuple(instructing), mentions=mentions)


def _instruction(text: str) -> slice | None:
    """Where a text speaks to the model; each word is looked at once, with the last word before it of each phrase."""
    reached: dict[tuple[int, int], tuple[int, int]] = {}
    tag = (-1, -1)
    system = -1
    for token in _TOKEN.finditer(text):
        word, start, end = token["word"], token.start(), token.end("word")
        if word is None:
            tag = token.span()
            continue
        if word in _TAGS and tag[1] == start and token["closes"] is not None:
            return slice(tag[0], token.end())
        if word == "prompt" and start == system + 1 and text[system] == " ":
            return slice(start - len("system "), end)
        if word == "system":
            system = end
        for number, place, gap in reversed(_ROLES.get(word, ())):
            begun, last = reached.get((number, place - 1), (start, start)) if place else (start, start)
            if place and ((number, place - 1) not in reached or start - last > gap):
                continue
            if place == len(_PHRASES[number]) - 1:
                return slice(begun, end)
            reached[number, place] = (begun, end)
    return next((slice(at, at + len(one)) for one in _LITERAL if (at := _whole(text, one)) >= 0), None)


def _whole(text: str, literal: str) -> int:
    """Where a literal stands that does not go on as a word, at either end; -1 if nowhere."""
    at = text.find(literal)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(literal) : at + len(literal) + 1]
        if literal[0] == "~" or not (_goes_on(before) or _goes_on(after)):
            return at
        at = text.find(literal, at + 1)
    return -1


def _goes_on(character: str) -> bool:
    return character.isalnum() or character == "_"


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
