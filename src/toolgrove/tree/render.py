"""How nodes look to an agent: as JSON, as items, as nested trees within a budget, as an outline."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from toolgrove.tree.node import Node
from toolgrove.tree.property_path import EVERYTHING, PropertyFilter
from toolgrove.tree.view import Lens

# JSON encoders give up between 126 and 500 nested levels; a node level takes two of them.
NESTED_LEVELS = 32
CHARS_PER_TOKEN = 4
_ENVELOPE = 240
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_CHILDREN = len('"children": [], ')
_MORE = len('"moreChildren": 000000, ')


def node_json(node: Node, shown: PropertyFilter = EVERYTHING) -> dict[str, Any]:
    """A node as answers show it, without its children."""
    return {
        "nodeId": node.id,
        "parentId": node.parent_id,
        "payloadType": node.type,
        "payload": shown(node.payload),
        "childrenCount": node.children_count,
    }


def breadcrumb(node: Node) -> list[dict[str, Any]]:
    """The way from the root to a node."""
    crumbs: list[dict[str, Any]] = []
    for depth, one in enumerate(node.ancestry()):
        name = one.name
        crumb: dict[str, Any] = {"nodeId": one.id, "depth": depth}
        crumbs.append(crumb if name is None else {"nodeId": one.id, "name": name, "depth": depth})
    return crumbs


@dataclass(kw_only=True, slots=True)
class Cut:
    """What a budget left out: children not shown, and under how many nodes."""

    children: int = 0
    parents: int = 0

    def add(self, children: int) -> None:
        self.children += children
        self.parents += 1

    def to_json(self) -> dict[str, Any]:
        """The note in the answer, with what to do about it."""
        return {
            "children": self.children,
            "parents": self.parents,
            "hint": "Raise maxTokens, page with pageSize, or ask for a node below.",
        }


def nested(
    root: Node, lens: Lens, *, max_tokens: int | None, max_nodes: int, as_outline: bool = False
) -> tuple[dict[str, Any], Cut]:
    """The visible tree under `root`, filled level by level until a budget is used up."""
    cost = _line_cost if as_outline else _branch_cost
    room = None if max_tokens is None else max_tokens * CHARS_PER_TOKEN - _ENVELOPE
    cut = Cut()
    top = _shown(root, lens)
    if room is not None:
        room -= cost(top, 0)
    queue: deque[tuple[Node, dict[str, Any], int]] = deque([(root, top, 0)])
    count, full = 1, False
    while queue:
        node, branch, depth = queue.popleft()
        if not node.children:
            continue
        if not lens.opens(node, depth):
            if lens.is_expanded(node) and lens.expanded is not None:
                branch["isExpanded"] = False
            continue
        if full or depth >= NESTED_LEVELS:
            _close(branch, node, cut)
            continue
        children: list[dict[str, Any]] = []
        for child in node.children.values():
            shown = _shown(child, lens)
            if room is not None:
                room -= cost(shown, depth + 1)
            if count >= max_nodes or (room is not None and room < 0):
                full = True
                break
            children.append(shown)
            queue.append((child, shown, depth + 1))
            count += 1
        if not children:
            _close(branch, node, cut)
            continue
        branch["children"] = children
        if len(children) < len(node.children):
            branch["moreChildren"] = len(node.children) - len(children)
            cut.add(branch["moreChildren"])
    return top, cut


def _shown(node: Node, lens: Lens) -> dict[str, Any]:
    branch = node_json(node, lens.filter)
    if lens.expanded is not None:
        branch["isExpanded"] = lens.is_expanded(node)
    return branch


def _close(branch: dict[str, Any], node: Node, cut: Cut) -> None:
    if "isExpanded" in branch:
        branch["isExpanded"] = False
    branch["moreChildren"] = node.children_count
    cut.add(node.children_count)


def _branch_cost(branch: dict[str, Any], depth: int) -> int:
    return len(json.dumps(branch)) + 2 + (_CHILDREN + _MORE if branch["childrenCount"] else 0)


def _line_cost(branch: dict[str, Any], depth: int) -> int:
    return len(json.dumps(_line(branch, depth, branch["childrenCount"])))


def _line(branch: dict[str, Any], depth: int, hidden: int) -> str:
    payload = _compact(branch["payload"]) if branch["payload"] else ""
    parts = ["  " * depth + branch["nodeId"], branch["payloadType"], payload, f"+{hidden}" if hidden else ""]
    return " ".join(part for part in parts if part)


def outline(branch: dict[str, Any]) -> str:
    """A nested answer as indented text: id, type, payload, and `+n` for children not shown."""
    lines: list[str] = []
    stack = [(branch, 0)]
    while stack:
        node, depth = stack.pop()
        children = node.get("children", ())
        lines.append(_line(node, depth, node["childrenCount"] - len(children)))
        stack.extend((child, depth + 1) for child in reversed(children))
    return "\n".join(lines)
