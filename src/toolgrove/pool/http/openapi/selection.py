"""Which operations of a document are taken over: by name, by tag, by path, or by method and path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolgrove.config import HttpToolConfig
from toolgrove.pool.globs import Globs

_TAG = "tag:"
_ROUTE = re.compile(r"[A-Z]+ /")


class Selection:
    """The operator's `include`, `exclude` and `tags`; `entry` is the place of the entry in the project file."""

    def __init__(self, entry: str, config: HttpToolConfig) -> None:
        self._entry = entry
        self._include = None if config.include is None else _Patterns(config.include)
        self._exclude = _Patterns(config.exclude)
        self._tags = None if config.tags is None else Globs(config.tags)

    def left_out(self, names: Iterable[str], method: str, path: str, tags: Sequence[str]) -> str:
        """Why an operation is not taken over; empty where it is."""
        names = tuple(names)
        pattern = self._exclude.match(names, method, path, tags)
        if pattern is not None:
            return f"{self._entry}.exclude: {pattern}"
        if self._include is not None and self._include.match(names, method, path, tags) is None:
            return f"{self._entry}.include does not name it"
        if self._tags is not None and not self._tags.matches(tags):
            return f"{self._entry}.tags names none of its tags"
        return ""


class _Patterns:
    """Patterns sorted by what they look at: `tag:orders`, `/orders/*`, `GET /orders/*`, or else a name."""

    def __init__(self, patterns: Iterable[str]) -> None:
        sorted_by: dict[str, list[str]] = {"tag": [], "path": [], "route": [], "name": []}
        for pattern in patterns:
            route = "route" if _ROUTE.match(pattern) else "name"
            kind = "tag" if pattern.startswith(_TAG) else "path" if pattern.startswith("/") else route
            sorted_by[kind].append(pattern)
        self._by = {kind: Globs(found) for kind, found in sorted_by.items()}

    def match(self, names: Iterable[str], method: str, path: str, tags: Iterable[str]) -> str | None:
        """A pattern that names the operation."""
        asked = {
            "name": tuple(names),
            "path": (path,),
            "route": (f"{method.upper()} {path}",),
            "tag": tuple(f"{_TAG}{tag}" for tag in tags),
        }
        for kind, values in asked.items():
            for pattern in self._by[kind].matches(values).values():
                return pattern
        return None
