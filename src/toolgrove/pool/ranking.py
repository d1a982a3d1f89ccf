"""Finds tools by words: BM25 over their names, descriptions and the names of their parameters.

The scores of each word are worked out when the index is built, so that a question only adds them up.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from math import log

from toolgrove.types import Schema, ToolSpec

_SATURATION = 1.2
_LENGTH = 0.6
_NAME, _DESCRIPTION, _PARAMETERS = 3.0, 1.0, 0.7
"""How much a word counts in each place; of a long description the beginning says most."""
_BEGINNING = 400
_KINDRED = 0.55
"""How much a word counts that means nearly the same as the one asked for, or begins with it."""
_COMPLETIONS = 6
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ss", "ss"), ("us", "us"))
_SAY_LITTLE = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have", "how"),
        *("i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "please", "so", "that"),
        *("the", "their", "them", "then", "there", "these", "this", "to", "tool", "up", "use", "using", "want", "was"),
        *("we", "what", "when", "where", "which", "who", "will", "with", "would", "you", "your"),
    )
)
_KIN = (
    "list show all every enumerate which",
    "get fetch read retrieve load view open look download",
    "search find query lookup seek",
    "create add new make insert start",
    "update edit change modify set patch rename",
    "delete remove drop erase destroy clear empty",
    "send post publish submit",
    "run execute start launch",
    "file document",
    "sheet worksheet spreadsheet workbook",
    "database sql table record row",
    "structure tree hierarchy nested",
    "schema column field type",
    "color colour background fill",
    "format bold font style",
    "folder directory",
    "picture image screenshot photo",
    "repo repository",
    "page site website web url link",
    "time clock date hour",
    "convert transform translate",
    "message mail email note comment",
    "copy duplicate clone",
    "move relocate",
    "type write fill enter",
    "click press tap",
    "difference diff compare change",
    "history log",
    "person user people member",
    "calculate compute evaluate sum math expression",
)


def words(text: str) -> Iterator[str]:
    """The words of a text or a name, in their simplest form; those that say little are left out."""
    for found in _WORD.findall(text):
        word = found.lower()
        if word not in _SAY_LITTLE:
            yield _stem(word)


def _stem(word: str) -> str:
    if len(word) <= 3:
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            return word[: -len(ending)] + instead
    if word.endswith("s"):
        word = word[:-1]
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3:
            return root[:-1] if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz" else root
    return word.removesuffix("e") if len(word) > 4 else word


_RELATED: dict[str, tuple[str, ...]] = {}
for _line in _KIN:
    _stems = tuple(dict.fromkeys(_stem(_one) for _one in _line.split()))
    for _one in _stems:
        _RELATED[_one] = tuple(dict.fromkeys((*_RELATED.get(_one, ()), *(other for other in _stems if other != _one))))


class Ranking:
    """An index of tools that answers which of them fit some words best."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        counted = [_counts(spec) for spec in specs]
        sizes = [sum(counts.values()) for counts in counted]
        average = sum(sizes) / len(sizes) if sizes else 1.0
        found: dict[str, list[tuple[int, float]]] = {}
        for number, counts in enumerate(counted):
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * sizes[number] / average)
            for word, count in counts.items():
                found.setdefault(word, []).append((number, count * (_SATURATION + 1) / (count + damping)))
        self._places = {word: array("l", [number for number, _ in hits]) for word, hits in found.items()}
        self._scores = {
            word: array("f", [score * _rarity(len(hits), len(specs)) for _, score in hits])
            for word, hits in found.items()
        }
        self._vocabulary = sorted(found)

    def best(self, question: str, most: int) -> list[ToolSpec]:
        """The tools that fit best, the best first; none where no word of the question is known."""
        totals: dict[int, float] = {}
        for word in dict.fromkeys(words(question)):
            for number, score in self._hits(word).items():
                totals[number] = totals.get(number, 0.0) + score
        ranked = nlargest(most, totals.items(), key=lambda item: (item[1], -item[0]))
        return [self._specs[number] for number, _ in ranked]

    def _hits(self, word: str) -> dict[int, float]:
        """What each tool gets for a word that was asked for: the best of the word itself and its kin."""
        hits = dict(zip(self._places.get(word, ()), self._scores.get(word, ()), strict=True))
        for kin in dict.fromkeys(self._kin(word)):
            for number, score in zip(self._places.get(kin, ()), self._scores.get(kin, ()), strict=True):
                if _KINDRED * score > hits.get(number, 0.0):
                    hits[number] = _KINDRED * score
        return hits

    def _kin(self, word: str) -> Iterable[str]:
        yield from _RELATED.get(word, ())
        if len(word) >= 3:
            at = bisect_left(self._vocabulary, word)
            longer = self._vocabulary[at : at + _COMPLETIONS]
            yield from (one for one in longer if one != word and one.startswith(word))


def _rarity(hits: int, total: int) -> float:
    return log(1 + (total - hits + 0.5) / (hits + 0.5))


def _counts(spec: ToolSpec) -> dict[str, float]:
    """How often each word stands in what a tool says of itself, by the weight of the place."""
    described = spec.description
    places = (
        (spec.name, _NAME),
        (described[:_BEGINNING], _DESCRIPTION),
        (described[_BEGINNING:], _DESCRIPTION / 2),
        (" ".join(_parameters(spec.input_schema)), _PARAMETERS),
    )
    counts: dict[str, float] = {}
    for text, weight in places:
        for word in words(text):
            counts[word] = counts.get(word, 0.0) + weight
    return counts


def _parameters(schema: Schema) -> list[str]:
    properties = schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []
