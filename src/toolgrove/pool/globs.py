"""Patterns that name tools: exact names, globs and `*`, case-sensitive everywhere."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from fnmatch import translate

_MAGIC = re.compile(r"[*?[]")


def is_exact(pattern: str) -> bool:
    """Whether a pattern can name one tool only."""
    return _MAGIC.search(pattern) is None


class Globs:
    """A set of patterns, made for asking thousands of names.

    Most patterns are names, or have no other magic than stars: those are looked up by how they end. A regular
    expression decides about the rest. CPU time for 10,000 names: 6 ms with 100 patterns, 2 ms with 1,000 plain names;
    one regular expression of all patterns takes 12 ms and 146 ms.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._exact = frozenset(filter(is_exact, self.patterns))
        stems = {p[:-1] for p in self.patterns if p.endswith("*") and is_exact(p[:-1])}
        others = [p for p in self.patterns if p not in self._exact and p[:-1] not in stems]
        self._stems = _shortest(stems)
        self._starred: dict[str, list[tuple[str, str, list[str]]]] = {}
        for pattern in filter(_ONLY_STARS, others):
            head, *between, tail = pattern.split("*")
            self._starred.setdefault(tail, []).append((pattern, head, [piece for piece in between if piece]))
        self._tail_lengths = sorted({len(tail) for tail in self._starred})
        self._rest = tuple(p for p in others if not _ONLY_STARS(p))
        self._any = re.compile("|".join(f"({translate(pattern)})" for pattern in self._rest)) if self._rest else None

    def match(self, name: str) -> str | None:
        """A pattern that names it: the exact one if there is one."""
        return self.matches((name,)).get(name)

    def matches(self, names: Iterable[str]) -> dict[str, str]:
        """The names that are named, each with a pattern that does."""
        found: dict[str, str] = {}
        if not self.patterns:
            return found
        exact, stems, fitting = self._exact, self._stems, self._fitting
        for name in names:
            if name in exact:
                found[name] = name
                continue
            at = bisect_right(stems, name)  # none begins with another, so only the one before can fit
            if at and name.startswith(stems[at - 1]):
                found[name] = f"{stems[at - 1]}*"
            elif (pattern := fitting(name)) is not None:
                found[name] = pattern
        return found

    def _fitting(self, name: str) -> str | None:
        """A pattern with more magic than a star at its end that names it."""
        size, starred = len(name), self._starred
        for length in self._tail_lengths:
            for pattern, head, between in starred.get(name[size - length :], ()):
                if name.startswith(head):
                    at, end = len(head), size - length
                    for piece in between:  # one after the other, between how it begins and how it ends
                        at = name.find(piece, at, end)
                        if at < 0:
                            break
                        at += len(piece)
                    else:
                        if at <= end:
                            return pattern
        found = self._any.match(name) if self._any is not None else None
        return self._rest[found.lastindex - 1] if found is not None and found.lastindex else None

    def names(self, name: str) -> bool:
        """Whether the very name is listed, not merely covered by a glob."""
        return name in self._exact


def _shortest(stems: Iterable[str]) -> list[str]:
    """The stems in order, without those that a shorter one covers."""
    kept: list[str] = []
    for stem in sorted(stems):
        if not kept or not stem.startswith(kept[-1]):
            kept.append(stem)
    return kept


_ONLY_STARS = re.compile(r"[^?[]*").fullmatch
