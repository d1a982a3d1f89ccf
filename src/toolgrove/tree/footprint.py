"""What a call rests on: in node concurrency, only changes to this make its version stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolgrove.tree.history import Commit
from toolgrove.tree.tree import Tree, walk


class Footprint(NamedTuple):
    """Nodes, child lists, or everything; a view-only call rests on the caller's view."""

    nodes: frozenset[str] = frozenset()
    child_lists: frozenset[str] = frozenset()
    everything: bool = False
    view: bool = False

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(
            nodes=self.nodes | other.nodes,
            child_lists=self.child_lists | other.child_lists,
            everything=self.everything or other.everything,
            view=self.view or other.view,
        )

    def disturbed_by(self, commits: Sequence[Commit]) -> list[str]:
        """The nodes of the footprint that some commits changed."""
        hit: dict[str, None] = {}
        nodes, lists = self.nodes, self.child_lists
        for commit in commits:
            if self.everything:
                hit.update(dict.fromkeys(commit.before))
                continue
            if nodes and not nodes.isdisjoint(commit.before):
                hit.update(dict.fromkeys(nodes & commit.before.keys()))
            if lists and not lists.isdisjoint(commit.parents):
                hit.update(dict.fromkeys(lists & commit.parents))
        return list(hit)


NOTHING = Footprint()
EVERYTHING = Footprint(everything=True)
VIEW = Footprint(view=True)


def of_node(node_id: str) -> Footprint:
    """A node, without its place among its siblings."""
    return Footprint(frozenset((node_id,)))


def of_children(node_id: str) -> Footprint:
    """The list of a node's children."""
    return Footprint(child_lists=frozenset((node_id,)))


def of_siblings(tree: Tree, node_id: str) -> Footprint:
    """The list that a node stands in."""
    node = tree.nodes.get(node_id)
    return of_node(node_id) if node is None or node.parent is None else of_children(node.parent.id)


def of_subtree(tree: Tree, node_id: str) -> Footprint:
    """A node, all below it, and all their child lists."""
    node = tree.nodes.get(node_id)
    ids = frozenset(one.id for one in walk(node)) if node is not None else frozenset((node_id,))
    return Footprint(nodes=ids, child_lists=ids)


def of_ancestors(tree: Tree, node_id: str) -> Footprint:
    """A node and the chain above it."""
    node = tree.nodes.get(node_id)
    return Footprint(nodes=frozenset(one.id for one in node.ancestry()) if node is not None else frozenset((node_id,)))
