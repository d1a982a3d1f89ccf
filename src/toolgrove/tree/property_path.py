"""Dotted property paths: how one finds values in a payload, and how several filter it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from toolgrove.notation.json_value import copied
from toolgrove.tree.node import Payload


class Missing:
    """The value of a property that is not there."""

    def __bool__(self) -> bool:
        return False


class Many(list[Any]):
    """The values that one path reaches through arrays."""


MISSING: Final = Missing()
Finder = Callable[[Payload], Any]
Segments = tuple[str, ...]


def segments(path: str) -> Segments:
    """The parts of a path; a leading `payload.` is only a habit."""
    return tuple(path.removeprefix("payload.").split("."))


def pick(mapping: Mapping[str, Any], segment: str) -> str | None:
    """The key that a segment names: the exact one, else the only one that differs in letter case."""
    if segment in mapping:
        return segment
    folded = segment.casefold()
    twins = [key for key in mapping if key.casefold() == folded]
    return twins[0] if len(twins) == 1 else None


@lru_cache(maxsize=1024)
def finder(path: str) -> Finder:
    """Compile a path to a function that finds its value, MISSING, or Many."""
    parts = segments(path)
    if len(parts) > 1:
        return lambda payload: _find(payload, parts)
    key, folded = parts[0], parts[0].casefold()

    def find(payload: Payload) -> Any:
        value = payload.get(key, MISSING)
        if value is not MISSING:
            return value
        twins = [name for name in payload if name.casefold() == folded]
        return payload[twins[0]] if len(twins) == 1 else MISSING

    return find


def _find(value: Any, parts: Segments) -> Any:
    while parts:
        if isinstance(value, list):
            found = [_find(item, parts) for item in value if isinstance(item, dict | list)]
            flat = [one for item in found for one in (item if type(item) is Many else [item])]
            return Many(one for one in flat if one is not MISSING) or MISSING
        if not isinstance(value, dict):
            return MISSING
        whole = ".".join(parts)
        if whole in value:
            return value[whole]
        key = pick(value, parts[0])
        if key is None:
            return MISSING
        value, parts = value[key], parts[1:]
    return value


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """Which properties a reader sees; exclusion wins, arrays are transparent."""

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def __call__(self, payload: Payload) -> Payload:
        if self.included:
            payload = _keep(payload, [segments(path) for path in self.included])
        if self.excluded:
            payload = _drop(payload, [segments(path) for path in self.excluded])
        return copied(payload)  # type: ignore[no-any-return]


EVERYTHING = PropertyFilter()


def _routes(mapping: Mapping[str, Any], paths: Sequence[Segments]) -> dict[str, list[Segments]]:
    """For each key that a path names, what is left of the paths below it; an empty rest means all of it."""
    routes: dict[str, list[Segments]] = {}
    for parts in paths:
        if parts == ("payload",):
            routes.update({key: [()] for key in mapping})
            continue
        whole = ".".join(parts)
        key, rest = (whole, ()) if whole in mapping else (pick(mapping, parts[0]), parts[1:])
        if key is not None:
            routes.setdefault(key, []).append(rest)
    return routes


def _keep(value: Any, paths: Sequence[Segments]) -> Any:
    if () in paths:
        return value
    if isinstance(value, list):
        return [_keep(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    routes = _routes(value, paths)
    return {key: _keep(item, routes[key]) for key, item in value.items() if key in routes}


def _drop(value: Any, paths: Sequence[Segments]) -> Any:
    if isinstance(value, list):
        return [_drop(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    routes = _routes(value, paths)
    return {
        key: _drop(item, routes[key]) if key in routes else item
        for key, item in value.items()
        if () not in routes.get(key, ())
    }
