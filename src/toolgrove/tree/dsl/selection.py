"""Runs a query over a tree: one walk in pre-order, each node once, from any point on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from toolgrove.tree.dsl.condition import compile_condition
from toolgrove.tree.dsl.parser import parse
from toolgrove.tree.dsl.syntax import Condition, Path
from toolgrove.tree.node import Node
from toolgrove.tree.node_attributes import QueryMemory
from toolgrove.tree.position import resume
from toolgrove.tree.predicate import Predicate, every
from toolgrove.tree.rank import Rank
from toolgrove.tree.tree import Tree

# How far the paths have come, one bit per step: at the node itself, and at it or any node above.
Progress = tuple[int, int]
NOWHERE: Progress = (0, 0)


class Selection:
    """A compiled query, ready to walk a tree."""

    def __init__(self, tree: Tree, text: str) -> None:
        query = parse(text)
        self.tree, self.query = tree, query
        self._memory = QueryMemory()
        self._bits = (1 << place for place in count())
        self._starts: dict[str, list[tuple[int, Predicate]]] = {}
        self._moves: list[tuple[int, bool, int, Predicate]] = []
        self._final = 0
        for path in query.paths:
            self._add(path, tree.root.id if path.start is None else tree[path.start].id)
        starts = list(self._starts)
        self.root = tree[starts[0]] if len(starts) == 1 else tree.root
        plain = len(query.paths) == 1 and len(self._moves) == 1 and not query.paths[0].start_filters
        self._plain = self._moves[0][3] if plain and self._moves[0][1] else None

    def nodes(self, after: Sequence[Rank] | None = None) -> Iterator[Node]:
        """The matching nodes, all or those after a position relative to `root`."""
        return self._walk(after) if self._plain is None else self._scan(self._plain, after)

    def matches_start(self) -> bool:
        """Whether the node where a query of one descendant step starts would match, were it below itself."""
        return self._plain is not None and self._plain(self.root)

    def _add(self, path: Path, start: str) -> None:
        reached = next(self._bits)
        self._starts.setdefault(start, []).append((reached, self._test(path.start_filters)))
        for step in path.steps:
            before, reached = reached, next(self._bits)
            self._moves.append((before, step.descendant, reached, self._test(step.filters, step.segment)))
        self._final |= reached

    def _test(self, filters: Sequence[Condition], segment: str | None = None) -> Predicate:
        tests = [compile_condition(condition, self._memory) for condition in filters]
        if segment is not None:
            tests.insert(0, lambda node: node.segment == segment)
        return every(tests) if tests else _always

    def _reach(self, node: Node, above: Progress) -> int:
        at_parent, anywhere = above
        reached = 0
        for before, descendant, bit, test in self._moves:
            if before & (anywhere if descendant else at_parent) and test(node):
                reached |= bit
        for bit, test in self._starts.get(node.id, ()):
            if test(node):
                reached |= bit
        return reached

    def _scan(self, test: Predicate, after: Sequence[Rank] | None) -> Iterator[Node]:
        """The walk of a query that is one descendant step: nothing to keep track of."""
        stack: list[Node] = []
        for later in resume(self.root, after or ())[1]:
            stack.extend(reversed(later))
        pop, push = stack.pop, stack.extend
        while stack:
            node = pop()
            if test(node):
                yield node
            if node.children:
                push(reversed(node.children.values()))

    def _walk(self, after: Sequence[Rank] | None) -> Iterator[Node]:
        stack: list[tuple[Node, Progress]] = []
        if after is None:
            stack.append((self.root, NOWHERE))
        else:
            above = NOWHERE
            for node, later in zip(*resume(self.root, after), strict=True):
                bits = self._reach(node, above)
                above = (bits, above[1] | bits)
                stack.extend((child, above) for child in reversed(later))
        while stack:
            node, above = stack.pop()
            bits = self._reach(node, above)
            if bits & self._final:
                yield node
            if node.children:
                below = (bits, above[1] | bits)
                stack.extend((child, below) for child in reversed(node.children.values()))


def _always(node: Node) -> bool:
    return True
