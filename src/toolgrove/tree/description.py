"""What a subtree holds, without its nodes: types, property paths, tags and depth, each with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolgrove.tree.node import Node, Payload
from toolgrove.tree.property_path import PropertyFilter

_KINDS = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
_LEVELS = 6


def describe(root: Node, shown: PropertyFilter) -> dict[str, Any]:
    """The description of a node and all below it, of what a read would show."""
    types: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    count, depth, level = 0, -1, [root]
    while level:
        depth += 1
        for node in level:
            count += 1
            types[node.type] += 1
            tags.update(node.tags)
            found: dict[str, set[str]] = {}
            payload = shown(node.payload) if shown.included or shown.excluded else node.payload
            for path, kind in _paths(payload):
                found.setdefault(path, set()).add(kind)
            nodes.update(found.keys())
            for path, of_path in found.items():
                kinds.setdefault(path, Counter()).update(of_path)
        level = [child for node in level if node.children for child in node.children.values()]
    return {
        "rootNodeId": root.id,
        "nodes": count,
        "depth": depth,
        "types": [{"payloadType": kind, "count": times} for kind, times in types.most_common()],
        "properties": [
            {"path": path, "count": times, "kinds": dict(kinds[path])} for path, times in nodes.most_common()
        ],
        "tags": [
            {"tag": tag, "count": times} for tag, times in sorted(tags.items(), key=lambda one: (-one[1], one[0]))
        ],
    }


def _paths(payload: Payload) -> Iterator[tuple[str, str]]:
    """Every property path of a payload with the kind of its value; what is in a list belongs to the list's path."""
    stack: list[tuple[str, Any, int]] = [(name, value, 1) for name, value in payload.items()]
    while stack:
        path, value, level = stack.pop()
        yield path, _KINDS.get(type(value), "null")
        inner = value if isinstance(value, list) else [value]
        if level < _LEVELS:
            stack.extend(
                (f"{path}.{name}", one, level + 1) for part in inner if type(part) is dict for name, one in part.items()
            )
