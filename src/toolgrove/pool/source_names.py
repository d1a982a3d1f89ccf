"""From a tool's own name to the one it has here: by the operator's word, else behind the source's name."""

from __future__ import annotations

from toolgrove.config import OwnNames
from toolgrove.pool.globs import Globs
from toolgrove.pool.naming import pool_name


class SourceNames:
    """The names of one source's tools; `entry` is its place in the project file.

    Pins, masks and effects go by a tool's own name, which nothing here changes.
    """

    def __init__(self, source: str, entry: str, config: OwnNames) -> None:
        self._source = source
        self._entry = entry
        self._prefix = source if config.prefix is None else config.prefix
        self._rename = config.rename
        self._include = None if config.include is None else Globs(config.include)
        self._exclude = Globs(config.exclude)

    def name(self, own_name: str, *others: str) -> str:
        """What it is called here; `others` are older spellings of its own name."""
        told = next((self._rename[name] for name in (own_name, *others) if name in self._rename), None)
        return told or pool_name(self._prefix, own_name)

    def also(self, own_name: str) -> tuple[str, ...]:
        """What it would be called without the operator's word: what forbids it under those names still does."""
        plain = (pool_name(self._source, own_name), pool_name(self._prefix, own_name))
        name = self.name(own_name)
        return tuple(dict.fromkeys(one for one in plain if one != name))

    def left_out(self, own_name: str, *others: str) -> str:
        """Why it is not taken over; empty where it is. `others` are older spellings of the name."""
        for name in (own_name, *others):
            pattern = self._exclude.match(name)
            if pattern is not None:
                return f"{self._entry}.exclude: {pattern}"
        if self._include is not None and not any(self._include.match(name) for name in (own_name, *others)):
            return f"{self._entry}.include does not name it"
        return ""
