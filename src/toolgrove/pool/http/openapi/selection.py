"""Which operations of a document are taken over: by name, by tag, by path, or by method and path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolgrove.config import HttpToolConfig
from toolgrove.pool.globs import Globs

_TAG = "tag:"
_ROUTE = re.compile(r"[A-Z]+ /")


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """By what an operation can be chosen; `names` has all spellings of its name."""

    names: tuple[str, ...]
    method: str
    path: str
    tags: tuple[str, ...]


class Selection:
    """The operator's `include`, `exclude` and `tags`; `entry` is the place of the entry in the project file."""

    def __init__(self, entry: str, config: HttpToolConfig) -> None:
        self._entry = entry
        self._config = config
        self._include = None if config.include is None else _Patterns(config.include)
        self._exclude = _Patterns(config.exclude)
        self._tags = None if config.tags is None else Globs(config.tags)

    def left_out(self, operation: Traits) -> str:
        """Why an operation is not taken over; empty where it is."""
        pattern = self._exclude.match(operation)
        if pattern is not None:
            return f"{self._entry}.exclude: {pattern}"
        if self._include is not None and self._include.match(operation) is None:
            return f"{self._entry}.include does not name it"
        if self._tags is not None and not self._tags.matches(operation.tags):
            return f"{self._entry}.tags names none of its tags"
        return ""

    def idle(self, operations: Sequence[Traits]) -> Iterator[str]:
        """Words of the operator that are about no operation: most are slips."""
        config, entry = self._config, self._entry
        for key, patterns in {"include": config.include or (), "exclude": config.exclude}.items():
            for pattern in patterns:
                if not any(map(_Patterns([pattern]).match, operations)):
                    yield f"{entry}.{key}: {pattern!r} matches no operation of the document."
        names = {name for operation in operations for name in operation.names}
        tags = {tag for operation in operations for tag in operation.tags}
        reads = () if isinstance(config.reads, bool) else config.reads
        for key, patterns, known in (("tags", config.tags or (), tags), ("reads", reads, names)):
            for pattern in patterns:
                if not Globs([pattern]).matches(known):
                    yield f"{entry}.{key}: {pattern!r} matches no operation of the document."
        for name in config.rename:
            if name not in names:
                yield f"{entry}.rename: the document has no operation {name!r}."


class _Patterns:
    """Patterns sorted by what they look at: `tag:orders`, `/orders/*`, `GET /orders/*`, or else a name."""

    def __init__(self, patterns: Iterable[str]) -> None:
        sorted_by: dict[str, list[str]] = {"tag": [], "path": [], "route": [], "name": []}
        for pattern in patterns:
            route = "route" if _ROUTE.match(pattern) else "name"
            kind = "tag" if pattern.startswith(_TAG) else "path" if pattern.startswith("/") else route
            sorted_by[kind].append(pattern)
        self._by = {kind: Globs(found) for kind, found in sorted_by.items()}

    def match(self, operation: Traits) -> str | None:
        """A pattern that names the operation."""
        asked = {
            "name": operation.names,
            "path": (operation.path,),
            "route": (f"{operation.method.upper()} {operation.path}",),
            "tag": tuple(f"{_TAG}{tag}" for tag in operation.tags),
        }
        for kind, values in asked.items():
            for pattern in self._by[kind].matches(values).values():
                return pattern
        return None
