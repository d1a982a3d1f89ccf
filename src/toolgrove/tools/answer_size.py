"""Keeps an answer within its budget: what does not fit is left out by structure, and the answer tells how much."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from toolgrove.notation.json_value import compact_ascii
from toolgrove.tree.render import CHARS_PER_TOKEN
from toolgrove.types import Result

LEAST = 200
"""Tokens of the smallest answer: below that there would be no room to say what is missing."""
_NOTE = 240
_WHOLE = frozenset(("version", "nextPageToken", "hint", "cut", "json", "viewJson", "text", "dryRun"))
"""What is never cut here: documents keep to the budget by themselves, and a token is of use only as it is."""
_MAPS = frozenset(("idMap", "expanded", "payload", "properties", "refs", "schema"))
_SHORT = 300
_SMALLEST = 24
_PLACES = 6
_ROUNDS = 5
_FIELDS = 40


def size(value: Any) -> int:
    """How many characters a value takes in an answer."""
    return len(json.dumps(value))


def fits(result: Result, tokens: int) -> bool:
    """Whether an answer keeps to a budget."""
    return surely_fits(compact_ascii(result), tokens) or size(result) <= tokens * CHARS_PER_TOKEN


def surely_fits(text: str, tokens: int) -> bool:
    """Whether an answer keeps to a budget, by its shortest text: spaces make that at most half as long again."""
    return len(text) * 3 // 2 <= tokens * CHARS_PER_TOKEN


def written(result: Result, tokens: int | None) -> str | None:
    """The text of an answer that surely keeps to a budget, or has none; None for any other, and for what is no JSON."""
    if tokens is not None:
        tokens = max(tokens, LEAST)
        for value in result.values():
            if type(value) is list and len(value) > tokens * CHARS_PER_TOKEN // 2:
                return None  # it would take long to find out
    text = compact_ascii(result)
    if (tokens is not None and not surely_fits(text, tokens)) or "NaN" in text or "Infinity" in text:
        return None
    return text


def fitted(result: Result, tokens: int, hint: str) -> Result:
    """The answer within a budget; `cut` counts by place what is left out, and says how to get it.

    Without a `hint`, that is the same call with a larger budget.
    """
    limit = max(tokens, LEAST) * CHARS_PER_TOKEN
    pruning = _Cutting()
    pruned = pruning.prune(result, limit)
    if not pruning.left and fits(result, limit // CHARS_PER_TOKEN):
        return result
    known, shown = result.get("cut", {}), {name: value for name, value in pruned.items() if name != "cut"}
    hint = hint or (known.get("hint") if known and not pruning.left else None) or _larger(result, pruned)
    room, left = limit - _NOTE - size(known), dict(known.get("left", {}))
    answer: Result = {}
    for _ in range(_ROUNDS):
        cutting = _Cutting(pruning.left)
        fields = cutting.record(shown, room, "")
        answer = {**fields, "cut": {**known, "left": left | cutting.told(), "hint": hint}}
        over = size(answer) - limit
        if over <= 0:
            break
        room -= over + _SMALLEST
    return answer


def _larger(result: Result, pruned: Result) -> str:
    wanted = size(result) // CHARS_PER_TOKEN + LEAST if pruned == result else 0
    return f"maxTokens: {wanted} shows all of it." if wanted else "A larger maxTokens shows more of it."


class _Cutting:
    """What was left out of one answer so far, by its place."""

    def __init__(self, left: Mapping[str, int] | None = None) -> None:
        self.left: dict[str, int] = dict(left or {})

    def note(self, place: str, count: int) -> None:
        self.left[place] = self.left.get(place, 0) + count

    def told(self) -> dict[str, int]:
        """The places with most left out; the rest together."""
        most = sorted(self.left.items(), key=lambda pair: -pair[1])
        rest = sum(count for _, count in most[_PLACES:])
        return {**{place[:48]: count for place, count in most[:_PLACES]}, **({"elsewhere": rest} if rest else {})}

    def prune(self, result: Result, room: int) -> Result:
        """Shorten lists that cannot fit whatever they hold, so that measuring the rest is quick."""
        pruned: Result = {}
        for name, value in result.items():
            if isinstance(value, list) and len(value) * 2 > room:
                pruned[name] = self._first(value, room // 2, name)
            elif isinstance(value, dict) and name == "wouldChange":
                pruned[name] = {
                    kind: self._first(entries, room // 2, f"{name}.{kind}") for kind, entries in value.items()
                }
            else:
                pruned[name] = value
        return pruned

    def _first(self, values: list[Any], most: int, place: str) -> list[Any]:
        if len(values) > most:
            self.note(place, len(values) - most)
        return values[:most]

    def value(self, value: Any, room: int, place: str) -> Any:
        """A value in so much room."""
        if size(value) <= room:
            return value
        if isinstance(value, str):
            return self.text(value, room, place)
        if isinstance(value, list):
            return self.listing(value, room, place)
        if isinstance(value, dict):
            return self.entries(value, room, place) if _is_map(place, value) else self.record(value, room, place)
        return value

    def text(self, value: str, room: int, place: str) -> str:
        """The beginning of a text, and how much longer it is."""
        kept = value[: max(room, 0)]
        while kept and size(kept) > room - _SMALLEST:
            kept = kept[: len(kept) * 3 // 4]
        self.note(f"{place} characters", len(value) - len(kept))
        return f"{kept}… (+{len(value) - len(kept)} characters)"

    def listing(self, values: Sequence[Any], room: int, place: str) -> list[Any]:
        """The first items; the very first one is shortened if it must be, since none would come otherwise."""
        kept: list[Any] = []
        room -= 2
        for value in values:
            cost = size(value) + 2
            if cost > room:
                break
            kept.append(value)
            room -= cost
        if not kept and values and isinstance(values[0], dict) and room > _SMALLEST:
            kept.append(self.value(values[0], room, place))
        if len(kept) < len(values):
            self.note(place, len(values) - len(kept))
        return kept

    def entries(self, values: dict[str, Any], room: int, place: str) -> dict[str, Any]:
        """The entries of an object that can do with fewer: the small ones first, then large ones, shortened."""
        costs = {name: size(name) + 4 + size(value) for name, value in islice(values.items(), max(room // 6, 1))}
        kept: dict[str, Any] = {}
        waiting: list[str] = []
        for name in sorted(costs, key=lambda name: costs[name]):
            if costs[name] <= room and not waiting:
                kept[name] = values[name]
                room -= costs[name]
            else:
                waiting.append(name)
        for at, name in enumerate(waiting[:_PLACES]):
            share = room // (min(len(waiting), _PLACES) - at) - size(name) - 4
            if share > 2 * _SMALLEST and isinstance(values[name], str | list | dict):
                kept[name] = self.value(values[name], share, f"{place}.{name}")
                room -= size(name) + 4 + size(kept[name])
        if len(kept) < len(values):
            self.note(place, len(values) - len(kept))
        return {name: kept[name] for name in costs if name in kept}

    def record(self, values: dict[str, Any], room: int, place: str) -> dict[str, Any]:
        """All the fields of an object; what is large shares the room that what is small leaves."""
        costs = {name: size(value) for name, value in values.items()}
        large = {name for name, value in values.items() if _is_large(name, value, costs[name], place)}
        room -= sum(size(name) + 4 for name in values) + sum(costs[name] for name in values if name not in large)
        shares: dict[str, int] = {}
        for at, name in enumerate(sorted(large, key=lambda name: costs[name])):
            shares[name] = min(costs[name], max(room, 0) // (len(large) - at))
            room -= shares[name]
        return {
            name: self.value(value, shares[name], f"{place}.{name}" if place else name) if name in large else value
            for name, value in values.items()
        }


def _is_large(name: str, value: Any, cost: int, place: str) -> bool:
    if not place and name in _WHOLE:
        return False
    return cost > (_SHORT if isinstance(value, str) else _SMALLEST) and isinstance(value, str | list | dict)


def _is_map(place: str, value: dict[str, Any]) -> bool:
    """Whether an object can do with fewer entries; one of our own keeps all its fields."""
    return len(value) > _FIELDS or not _MAPS.isdisjoint(place.split("."))
