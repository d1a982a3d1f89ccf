"""How nodes look to an agent: as JSON, as items, as nested trees within a budget, as an outline."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolgrove.tree.node import Node
from toolgrove.tree.property_path import EVERYTHING, PropertyFilter
from toolgrove.tree.view import Lens

# JSON encoders give up between 126 and 500 nested levels; a node level takes two of them.
NESTED_LEVELS = 32
CHARS_PER_TOKEN = 4
ENVELOPE = 300
"""The characters of an answer around its nodes: the version, and the note of what was cut."""
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_CHILDREN = len('"children": [], ')
_MORE = len('"moreChildren": 000000, ')


def node_json(node: Node, shown: PropertyFilter = EVERYTHING) -> dict[str, Any]:
    """A node as answers show it, without its children: tags if it has any, and the group that shares its payload."""
    form: dict[str, Any] = {
        "nodeId": node.id,
        "parentId": node.parent_id,
        "payloadType": node.type,
        "payload": shown(node.payload),
        "childrenCount": node.children_count,
    }
    if node.tags:
        form["tags"] = sorted(node.tags)
    if node.is_shared:
        form["payloadGroup"] = node.group
    return form


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
    """What an answer left out: how many nodes in all, and how many of them are children of how many that it shows.

    `payloads` are those of nodes that it shows without, since one alone would be too long.
    """

    hint: str = "Raise maxTokens, page with pageSize, or ask for a node below."
    nodes: int = 0
    children: int = 0
    parents: int = 0
    payloads: int = 0

    def add(self, children: int, nodes: int) -> None:
        self.children += children
        self.nodes += nodes
        self.parents += 1

    def noted(self, key: str = "cut") -> dict[str, Any]:
        """The note for the answer, with what to do about it; nothing where nothing is left out."""
        if not self.parents and not self.payloads:
            return {}
        more = {"payloads": self.payloads} if self.payloads else {}
        counts = {"nodes": self.nodes, "children": self.children, "parents": self.parents, **more}
        return {key: {**counts, "hint": self.hint}}

    def inside(self) -> dict[str, Any]:
        """The note for the document itself, by which whoever reads it later knows."""
        noted = self.noted()
        return {"cut": {"nodes": self.nodes, **({"payloads": self.payloads} if self.payloads else {})}} if noted else {}


Cost = Callable[[dict[str, Any], int], int]
"""How many characters a node takes in the answer, at a depth."""


def nested(
    root: Node, lens: Lens, *, max_tokens: int | None, max_nodes: int, cost: Cost | None = None, taken: int = 0
) -> tuple[dict[str, Any], Cut]:
    """The visible tree under `root`, filled level by level until a budget is used up; `taken` are the characters that
    the rest of the answer needs."""
    cost = cost or branch_cost
    room = None if max_tokens is None else max_tokens * CHARS_PER_TOKEN - ENVELOPE - taken
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
        children: list[dict[str, Any]] = []
        if depth >= NESTED_LEVELS and not full:
            cut.hint = f"Nested answers end {NESTED_LEVELS} levels down: page with pageSize, or ask for a node below."
        elif not full:
            for child in node.children.values():
                shown = _shown(child, lens)
                if room is not None:
                    room -= cost(shown, depth + 1)
                if count >= max_nodes:
                    cut.hint = f"One answer shows {max_nodes} nodes: page with pageSize, or ask for a node below."
                full = count >= max_nodes or (room is not None and room < 0)
                if full:
                    break
                children.append(shown)
                queue.append((child, shown, depth + 1))
                count += 1
        if children:
            branch["children"] = children
        elif "isExpanded" in branch:
            branch["isExpanded"] = False
        if len(children) < len(node.children):
            branch["moreChildren"] = len(node.children) - len(children)
            left = islice(node.children.values(), len(children), None)
            cut.add(branch["moreChildren"], lens.count(list(left), depth + 1))
    return top, cut


def _shown(node: Node, lens: Lens) -> dict[str, Any]:
    branch = node_json(node, lens.filter)
    if lens.expanded is not None:
        branch["isExpanded"] = lens.is_expanded(node)
    return branch


def branch_cost(branch: dict[str, Any], depth: int) -> int:
    """As JSON in JSON."""
    return len(json.dumps(branch)) + 2 + (_CHILDREN + _MORE if branch["childrenCount"] else 0)


def text_cost(branch: dict[str, Any], depth: int) -> int:
    """As JSON inside of a text, where every quote counts twice."""
    return len(json.dumps(_compact(branch))) + (_CHILDREN + _MORE if branch["childrenCount"] else 0)


def line_cost(branch: dict[str, Any], depth: int) -> int:
    """As a line of an outline."""
    return len(json.dumps(line(branch, depth, branch["childrenCount"])))


def line(branch: dict[str, Any], depth: int, hidden: int) -> str:
    """A node in an outline: id, type, payload, `tags`, `=group` where it is shared, `+n` for children not shown."""
    payload = _compact(branch["payload"]) if branch["payload"] else ""
    tags = f"tags{_compact(branch['tags'])}" if "tags" in branch else ""
    shared = f"={branch['payloadGroup']}" if "payloadGroup" in branch else ""
    parts = [
        "  " * depth + branch["nodeId"],
        branch["payloadType"],
        payload,
        tags,
        shared,
        f"+{hidden}" if hidden else "",
    ]
    return " ".join(part for part in parts if part)


def outline(branch: dict[str, Any]) -> str:
    """A nested answer as indented text, a line for each node."""
    lines: list[str] = []
    stack = [(branch, 0)]
    while stack:
        node, depth = stack.pop()
        children = node.get("children", ())
        lines.append(line(node, depth, node["childrenCount"] - len(children)))
        stack.extend((child, depth + 1) for child in reversed(children))
    return "\n".join(lines)
