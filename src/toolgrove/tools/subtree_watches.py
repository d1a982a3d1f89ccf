"""The subtrees that somebody watches: who is told of a change, without a walk through the tree."""

from __future__ import annotations

import logging
from collections.abc import Callable

from toolgrove.tree.effects import Effects
from toolgrove.tree.tree import Tree

log = logging.getLogger("toolgrove.tools")


class SubtreeWatches:
    """Finds what a change touches by climbing from the changed nodes to the roots that are watched."""

    def __init__(self) -> None:
        self._watchers: dict[str, dict[object, Callable[[], None]]] = {}

    def add(self, node_id: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` once for each change of the tree at or below a node, until the answer is called."""
        key = object()
        self._watchers.setdefault(node_id, {})[key] = tell

        def end() -> None:
            watchers = self._watchers.get(node_id, {})
            watchers.pop(key, None)
            if not watchers and self._watchers.get(node_id) is watchers:
                del self._watchers[node_id]

        return end

    def touched(self, tree: Tree, effects: Effects) -> frozenset[str]:
        """The watched nodes at or below which something changed, came, went or stood; `tree` is as it is after that."""
        if not self._watchers or not effects.commits:
            return frozenset()
        found: set[str] = set()
        seen: set[str] = set()
        # A node that left its place is told by the parents that it left and came to.
        for start in (*effects.after, *(parent for commit in effects.commits for parent in commit.parents)):
            if start in self._watchers:
                found.add(start)  # it may be gone
            node = tree.nodes.get(start)
            while node is not None and node.id not in seen:
                seen.add(node.id)
                if node.id in self._watchers:
                    found.add(node.id)
                node = node.parent
            if len(found) == len(self._watchers):
                break
        return frozenset(found)

    def tell_all(self) -> None:
        """Tell everybody: the whole tree may be another one now."""
        self.tell(frozenset(self._watchers))

    def tell(self, node_ids: frozenset[str]) -> None:
        """Tell those who watch these nodes."""
        for node_id in node_ids:
            for tell in list(self._watchers.get(node_id, {}).values()):
                try:
                    tell()
                except Exception:
                    log.exception("a watcher could not be told")
