"""What one session sees: which nodes are open, and which properties it wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolgrove.tree.node import Node
from toolgrove.tree.position import resume
from toolgrove.tree.property_path import EVERYTHING, PropertyFilter
from toolgrove.tree.rank import Rank


@dataclass(kw_only=True, slots=True)
class View:
    """The state of one session; changed only by `ViewChange.apply`."""

    session: str
    default_expanded: bool = False
    expanded: dict[str, bool] = field(default_factory=dict)
    node_filter: PropertyFilter = EVERYTHING
    view_filter: PropertyFilter = EVERYTHING
    seq: int = 0

    def twin(self) -> View:
        """A view that starts out as this one."""
        return replace(self, expanded=self.expanded.copy())

    def is_expanded(self, node_id: str) -> bool:
        """Whether the session has the node open."""
        return self.expanded.get(node_id, self.default_expanded)


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewChange:
    """What a call does to a session's view; None leaves a part as it is."""

    session: str
    expanded: Mapping[str, bool] = field(default_factory=dict)
    reset: bool = False
    default_expanded: bool | None = None
    node_filter: PropertyFilter | None = None
    view_filter: PropertyFilter | None = None

    def apply(self, view: View) -> Callable[[], None]:
        """Apply the change; returns a function that undoes it."""
        flags, default = view.expanded, view.default_expanded
        filters = view.node_filter, view.view_filter
        before = {} if self.reset else {key: flags.get(key) for key in self.expanded}
        if self.reset:
            view.expanded = {}
        view.expanded.update(self.expanded)
        if self.default_expanded is not None:
            view.default_expanded = self.default_expanded
        if self.node_filter is not None:
            view.node_filter = self.node_filter
        if self.view_filter is not None:
            view.view_filter = self.view_filter

        def take_back() -> None:
            view.expanded, view.default_expanded = flags, default
            view.node_filter, view.view_filter = filters
            for key, flag in before.items():
                if flag is None:
                    del flags[key]
                else:
                    flags[key] = flag

        return take_back


@dataclass(frozen=True, kw_only=True, slots=True)
class Lens:
    """How one read looks at a subtree; without flags of a view, all of it is open."""

    filter: PropertyFilter = EVERYTHING
    depth_limit: int | None = None
    expanded: Mapping[str, bool] | None = None
    default_expanded: bool = True

    def opens(self, node: Node, depth: int) -> bool:
        """Whether the children of a node at that depth are shown."""
        if self.depth_limit is not None and depth >= self.depth_limit:
            return False
        return self.is_expanded(node)

    def is_expanded(self, node: Node) -> bool:
        """Whether the node itself is open."""
        if self.expanded is None:
            return True
        return self.expanded.get(node.id, self.default_expanded)

    def count(self, level: list[Node], depth: int) -> int:
        """How many nodes are visible in the subtrees of some nodes at that depth."""
        total = 0
        while level:
            total += len(level)
            if self.expanded is None:
                opened = level if self.depth_limit is None or depth < self.depth_limit else []
            else:
                opened = [node for node in level if node.children and self.opens(node, depth)]
            level = [child for node in opened if node.children for child in node.children.values()]
            depth += 1
        return total

    def walk(self, root: Node, after: Sequence[Rank] | None = None) -> Iterator[tuple[Node, int]]:
        """The visible nodes with their depth, in pre-order, all or those after a position."""
        # One iterator per level, so that a page costs what it returns, however wide the level is.
        levels: list[Iterator[Node]] = [iter(())]
        if after is None:
            levels = [iter((root,))]
        else:
            for depth, (node, later) in enumerate(zip(*resume(root, after), strict=True)):
                if not self.opens(node, depth):
                    break
                levels.append(iter(later))
        while levels:
            node_or_none = next(levels[-1], None)
            if node_or_none is None:
                levels.pop()
                continue
            depth = len(levels) - 1
            yield node_or_none, depth
            if node_or_none.children and self.opens(node_or_none, depth):
                levels.append(iter(node_or_none.children.values()))
