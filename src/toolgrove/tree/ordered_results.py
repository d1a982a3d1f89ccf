"""Ordered results that pages are cut from, kept while the tree is the one that they were found in."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

_RESULTS = 8
_ITEMS = 400_000


class OrderedResults:
    """The latest results by question and version; bounded in number and size, so that old ones go first."""

    def __init__(self) -> None:
        self._held: dict[Hashable, list[Any]] = {}
        # Long reads run in threads of their own.
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], list[Any]]) -> list[Any]:
        """The result under a key, made now unless it is still there; nobody changes it."""
        with self._lock:
            found = self._held.pop(key, None)
        if found is None:
            found = make()
        with self._lock:
            self._held[key] = found
            while len(self._held) > _RESULTS or sum(map(len, self._held.values())) > _ITEMS:
                del self._held[next(iter(self._held))]
        return found
