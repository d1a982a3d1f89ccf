"""Cuts a large value by its structure: fewer items of its lists, the beginning of its texts, and counts of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrove.notation.json_value import compact

PER_TOKEN = 4
_STEPS = ((400, 4000), (150, 2000), (60, 1000), (30, 600), (15, 400), (8, 240), (4, 160), (2, 100), (1, 60), (0, 40))
"""How many items of a list and how many characters of a text are shown, from much to next to nothing."""
_SEARCHES = 6
_DEPTH = 60
_NOTED = 60
"""Characters that saying how much is left out may take."""


def tokens(text: str) -> int:
    """An estimate of what a text costs a model."""
    return -(-len(text) // PER_TOKEN)


def shortened(value: Any, most: int, *, marks: bool) -> Any:
    """The value with as much as fits into so many tokens; with `marks`, what is left out is counted in its place.

    Without them its shape stays: only lists get shorter, and texts.
    """
    before = _STEPS[0]
    for step in _STEPS:
        cut = _cut(value, *step, marks, 0)
        if tokens(compact(cut)) <= most:
            return _filled(value, most, step, before, cut, marks=marks)
        before = step
    return _cut(value, *_STEPS[-1], marks, 0)


def _filled(value: Any, most: int, fits: tuple[int, int], above: tuple[int, int], cut: Any, *, marks: bool) -> Any:
    """The most items that fit, between a step that does and the one above it that does not."""
    low, high = fits[0], above[0]
    for _ in range(_SEARCHES):
        middle = (low + high) // 2
        if middle == low:
            break
        tried = _cut(value, middle, fits[1], marks, 0)
        if tokens(compact(tried)) <= most:
            low, cut = middle, tried
        else:
            high = middle
    return cut


def _cut(value: Any, items: int, characters: int, marks: bool, depth: int) -> Any:
    if isinstance(value, str):
        return _cut_text(value, characters)
    if depth > _DEPTH:
        return "…" if marks else value
    if isinstance(value, list | tuple):
        kept = [_cut(one, items, characters, marks, depth + 1) for one in value[:items]]
        if marks and len(value) > items:
            kept.append(f"… {len(value) - items:,} more of {len(value):,}")
        return kept
    if isinstance(value, Mapping):
        most = max(items * 4, 12)
        if not marks or len(value) <= most:
            return {key: _cut(one, items, characters, marks, depth + 1) for key, one in value.items()}
        shown = {key: _cut(value[key], items, characters, marks, depth + 1) for key in list(value)[:most]}
        return {**shown, "…": f"{len(value) - most:,} more of {len(value):,} keys"}
    return value


def _cut_text(text: str, characters: int) -> str:
    if len(text) <= characters + _NOTED:
        return text
    return f"{text[:characters]}… ({len(text):,} characters)"


def shortened_lines(text: str, most: int) -> str:
    """The first lines of a text that fit into so many tokens, and how many there are more."""
    room = max(most * PER_TOKEN - _NOTED, _NOTED)
    if len(text) <= room:
        return text
    lines = text.splitlines(keepends=True)
    shown, size = 0, 0
    while shown < len(lines) and size + len(lines[shown]) <= room:
        size += len(lines[shown])
        shown += 1
    if shown == 0:
        return f"{text[:room]}… ({len(text):,} characters in {len(lines):,} lines)"
    return f"{''.join(lines[:shown])}… {len(lines) - shown:,} more of {len(lines):,} lines"
