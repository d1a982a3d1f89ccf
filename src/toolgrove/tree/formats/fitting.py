"""Which nodes of a subtree a text has room for, and how a text says that some are missing."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from toolgrove.tree.node import Node
from toolgrove.tree.render import Cut
from toolgrove.tree.view import Lens

_CUT = re.compile(r"cut: (\d+) nodes are missing")
_LONGEST = 200
Shown = Mapping[str, list[Node]]
"""The children that a text shows of each node."""
Lines = Callable[[Node, int], str]
"""What a text says of a node at a depth."""


def cut_note(cut: Cut) -> str:
    """The words by which a text says that it is not whole; nothing where it is."""
    return f"cut: {cut.nodes} nodes are missing" if cut.noted() else ""


def is_cut_note(text: str) -> bool:
    """Whether a line says so."""
    return _CUT.fullmatch(text.strip()) is not None


def fitting(root: Node, says: Lines, room: int | None) -> tuple[Shown, Cut]:
    """The nodes to show, level by level until the room is used up, and what is left out."""
    cut = Cut(hint="Raise maxTokens, or export a node below.")
    shown: dict[str, list[Node]] = {}
    everything = Lens()
    if room is not None:
        room -= _cost(says(root, 0))
    queue: deque[tuple[Node, int]] = deque([(root, 0)])
    while queue:
        node, depth = queue.popleft()
        kept: list[Node] = []
        for child in (node.children or {}).values():
            if room is not None:
                room -= _cost(says(child, depth + 1))
                if room < 0:
                    left = list(islice((node.children or {}).values(), len(kept), None))
                    cut.add(len(left), everything.count(left, 0))
                    break
            kept.append(child)
            queue.append((child, depth + 1))
        shown[node.id] = kept
    return shown, cut


def in_order(root: Node, shown: Shown) -> Iterator[tuple[Node, int]]:
    """The nodes to show with their depths, each before those below it."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in reversed(shown.get(node.id, [])))


def title(node: Node, *, short: bool) -> str:
    """The name of a node in a text, else its id."""
    name = node.segment
    return f"{name[:_LONGEST]}…" if short and len(name) > _LONGEST else name


def _cost(line: str) -> int:
    """What a line takes in an answer, its end included."""
    return len(json.dumps(line)) + 2
