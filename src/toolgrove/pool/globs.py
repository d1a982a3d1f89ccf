"""Patterns that name tools: exact names, globs and `*`, case-sensitive everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

_MAGIC = re.compile(r"[*?[]")


def is_exact(pattern: str) -> bool:
    """Whether a pattern can name one tool only."""
    return _MAGIC.search(pattern) is None


class Globs:
    """A set of patterns, made for asking thousands of names: most patterns are names or end in their one star."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._exact = frozenset(filter(is_exact, self.patterns))
        self._stems = {p[:-1]: p for p in self.patterns if p.endswith("*") and is_exact(p[:-1])}
        self._lengths = sorted({len(stem) for stem in self._stems})
        self._rest = tuple(p for p in self.patterns if p not in self._exact and p[:-1] not in self._stems)
        self._any = re.compile("|".join(f"({translate(pattern)})" for pattern in self._rest)) if self._rest else None

    def match(self, name: str) -> str | None:
        """A pattern that names it: the exact one if there is one."""
        if name in self._exact:
            return name
        stems = self._stems
        for length in self._lengths:
            stem = name[:length]
            if stem in stems:
                return stems[stem]
        found = self._any.match(name) if self._any is not None else None
        return self._rest[found.lastindex - 1] if found is not None and found.lastindex else None

    def names(self, name: str) -> bool:
        """Whether the very name is listed, not merely covered by a glob."""
        return name in self._exact
