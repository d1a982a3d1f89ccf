"""Bookmarks: labels of an agent's own on nodes of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolgrove.tree.history import Bookmark, Commit, Images
from toolgrove.tree.tree import Tree


class Bookmarks:
    """Every agent's labels; they fall with their nodes, and come back with them."""

    def __init__(self, held: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._held = {agent: dict(labels) for agent, labels in (held or {}).items()}

    def twin(self) -> Bookmarks:
        """Bookmarks that start out as these."""
        return Bookmarks(self._held)

    def of(self, agent: str) -> dict[str, str]:
        """The agent's labels with the nodes they stand on."""
        return self._held.setdefault(agent, {})

    def labels(self) -> list[tuple[str, str]]:
        """Every label, with the agent that it belongs to."""
        return [(agent, label) for agent, labels in self._held.items() for label in labels]

    def point(self, agent: str, label: str, node_id: str | None) -> str | None:
        """Set a label, or take it away; returns where it stood before."""
        own = self.of(agent)
        before = own.pop(label, None)
        if node_id is not None:
            own[label] = node_id
        return before

    def fall(self, tree: Tree, before: Images) -> tuple[Bookmark, ...]:
        """Take away the labels on nodes that a commit removed."""
        if not self._held:
            return ()
        gone = {node_id for node_id in before if node_id not in tree.nodes}
        if not gone:
            return ()
        fallen = tuple(
            (agent, label, node_id)
            for agent, labels in self._held.items()
            for label, node_id in labels.items()
            if node_id in gone
        )
        self.drop(fallen)
        return fallen

    def revive(self, tree: Tree, commits: Iterable[Commit]) -> tuple[Bookmark, ...]:
        """Bring back the labels that fell with some commits, where node and label are free for it."""
        revived: list[Bookmark] = []
        for commit in commits:
            for agent, label, node_id in commit.dropped:
                own = self.of(agent)
                if node_id in tree.nodes and label not in own:
                    own[label] = node_id
                    revived.append((agent, label, node_id))
        return tuple(revived)

    def drop(self, bookmarks: Iterable[Bookmark]) -> None:
        for agent, label, _ in bookmarks:
            del self._held[agent][label]

    def put(self, bookmarks: Iterable[Bookmark]) -> None:
        for agent, label, node_id in bookmarks:
            self.of(agent)[label] = node_id
