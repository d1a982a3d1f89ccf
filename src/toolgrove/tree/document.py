"""Trees as JSON documents: writing one, and reading one without trusting it."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

from toolgrove.errors import BatchTooLarge, InvalidArgument
from toolgrove.notation import strict_json
from toolgrove.notation.json_value import MAX_NESTING, detached, identical, in_pieces
from toolgrove.tree.node import Node, Payload, name_of
from toolgrove.tree.render import CHARS_PER_TOKEN, ENVELOPE, NESTED_LEVELS, Cut
from toolgrove.tree.tree import ROOT, walk
from toolgrove.tree.view import Lens

MAX_TEXT = 64_000_000
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_NODE_KEYS = frozenset(
    (
        "nodeId",
        "parentId",
        "payloadType",
        "payload",
        "payloadGroup",
        "tags",
        "children",
        "childrenCount",
        "moreChildren",
        "isExpanded",
        "depth",
        "viewRoot",
        "cut",
    )
)
_SHAPE = (
    ". A node is {payloadType, payload: {your properties}, nodeId?, tags?, children?: [nodes]}; "
    "or send flat {items: [{nodeId, parentId, payloadType, payload}]}"
)


def dumps(value: Any) -> str:
    """A document as compact JSON text, a large one in pieces."""
    return in_pieces(value, _encode)


def export(root: Node, *, max_tokens: int | None = None) -> tuple[dict[str, Any], Cut]:
    """A subtree as a document, and what a budget left out: nested, or flat where it is too deep for nested JSON."""
    groups = _groups(root)
    deep = _depth(root) > NESTED_LEVELS
    cut = Cut(hint="Raise maxTokens, or export a node below.")
    if max_tokens is None and deep:
        return {"items": [_item(node, root, groups, flat=True) for node in walk(root)]}, cut
    room = None if max_tokens is None else max_tokens * CHARS_PER_TOKEN - ENVELOPE
    everything = Lens()
    items = [_item(root, root, groups, flat=deep)]
    if room is not None:
        room -= _cost(items[0])
        if room < 0 and items[0]["payload"]:
            items[0]["payload"] = {}
            cut.payloads += 1
    queue: deque[tuple[Node, dict[str, Any]]] = deque([(root, items[0])])
    while queue:
        node, branch = queue.popleft()
        children: list[dict[str, Any]] = []
        for child in (node.children or {}).values():
            shown = _item(child, root, groups, flat=deep)
            if room is not None:
                room -= _cost(shown)
                if room < 0:
                    left = list(islice((node.children or {}).values(), len(children), None))
                    branch["moreChildren"] = len(left)
                    cut.add(len(left), everything.count(left, 0))
                    break
            children.append(shown)
            queue.append((child, shown))
        items.extend(children)
        if children and not deep:
            branch["children"] = children
    return {"items": items} if deep else items[0], cut


def _cost(shown: dict[str, Any]) -> int:
    """The document travels as a JSON string, so every quote in it counts twice."""
    return len(json.dumps(_encode(shown))) + 40


def _item(node: Node, root: Node, groups: Mapping[str, str], *, flat: bool) -> dict[str, Any]:
    above = {"parentId": _parent(node, root)} if flat else {}
    return {"nodeId": node.id, **above, **_content(node, groups)}


def _groups(root: Node) -> dict[str, str]:
    """Names for the payloads that several nodes of a subtree share, in the order in which it has them."""
    times = Counter(node.group for node in walk(root) if node.group is not None)
    shared = (group for group, count in times.items() if count > 1)
    return {group: f"p{at}" for at, group in enumerate(shared, 1)}


def _content(node: Node, groups: Mapping[str, str]) -> dict[str, Any]:
    content: dict[str, Any] = {"payloadType": node.type, "payload": node.payload}
    if node.group is not None and node.group in groups:
        content["payloadGroup"] = groups[node.group]
    if node.tags:
        content["tags"] = sorted(node.tags)
    return content


def _parent(node: Node, root: Node) -> str | None:
    return None if node is root or node.parent is None else node.parent.id


def _depth(root: Node) -> int:
    deepest, level = 0, [root]
    while level and deepest <= NESTED_LEVELS:
        level = [child for node in level for child in (node.children or {}).values()]
        deepest += bool(level)
    return deepest


@dataclass(frozen=True, kw_only=True, slots=True)
class Incoming:
    """A node as a document describes it; `parent` is its parent's place in the document, `group` names those that
    share its payload. One of `names_only` says nothing of its type, tags and other properties: a node that is there
    keeps them."""

    node_id: str | None
    parent: int | None
    parent_id: str | None
    type: str
    payload: Payload
    tags: frozenset[str] | None
    group: str | None
    is_cut: bool
    names_only: bool = False

    @property
    def segment(self) -> str:
        """How a path names the node."""
        return name_of(self.payload) or self.node_id or ""


def loads(text: Any) -> dict[str, Any]:
    """A document given as text or as an object."""
    if isinstance(text, str):
        if len(text) > MAX_TEXT:
            raise BatchTooLarge(argument="json", count=len(text), limit=MAX_TEXT, hint="Split the document.")
        try:
            text = strict_json.decode(text)
        except strict_json.TooDeep:
            _refuse("is nested too deeply; send a flat {items: [{nodeId, parentId, …}]}")
        except ValueError as problem:
            _refuse(f"is not JSON: {problem}")
    if not isinstance(text, dict):
        _refuse("must be an object with nodeId, payloadType, payload, children, or with items")
    return text


def read(text: Any, *, limit: int) -> list[Incoming]:
    """The nodes of a document, parents before children, siblings in order."""
    document = loads(text)
    found = _read_items(document["items"], limit) if "items" in document else _read_nested(document, limit)
    if "cut" in document and found:
        found[0] = replace(found[0], is_cut=True)
    _refuse_root_below(found)
    _refuse_disagreement(found)
    return found


def _read_nested(document: Mapping[str, Any], limit: int) -> list[Incoming]:
    found: list[Incoming] = []
    stack: list[tuple[Any, int | None]] = [(document, None)]
    while stack:
        node, parent = stack.pop()
        found.append(_incoming(node, parent, None if parent is not None else node.get("parentId")))
        if len(found) > limit:
            raise BatchTooLarge(argument="json", count=len(found) + len(stack), limit=limit)
        children = node.get("children", [])
        if not isinstance(children, list):
            _refuse(f"has 'children' that is not a list at {node.get('nodeId')!r}")
        stack.extend((child, len(found) - 1) for child in reversed(children))
    _refuse_twins([node.node_id for node in found])
    return found


def _read_items(items: Any, limit: int) -> list[Incoming]:
    if not isinstance(items, list) or not items:
        _refuse("has 'items' that is not a list of nodes")
    if len(items) > limit:
        raise BatchTooLarge(argument="json", count=len(items), limit=limit)
    by_parent: dict[str | None, list[Any]] = {}
    found = (item.get("nodeId") for item in items if isinstance(item, dict))
    ids = {node_id for node_id in found if isinstance(node_id, str)}
    for item in items:
        above = item.get("parentId") if isinstance(item, dict) else None
        known = isinstance(above, str) and above in ids
        by_parent.setdefault(above if known else None, []).append(item)
    ordered: list[Incoming] = []
    stack: list[tuple[Any, int | None]] = [(item, None) for item in reversed(by_parent.pop(None, []))]
    while stack:
        item, parent = stack.pop()
        outer = item.get("parentId") if parent is None and isinstance(item, dict) else None
        node = _incoming(item, parent, outer)
        ordered.append(node)
        if node.node_id is not None:
            children = by_parent.pop(node.node_id, ())
            stack.extend((child, len(ordered) - 1) for child in reversed(children))
    _refuse_twins([*(node.node_id for node in ordered), *_ids_of(by_parent)])
    if by_parent:
        looped = _ids_of(by_parent)
        raise InvalidArgument(
            f"These nodes are below each other in a circle: {', '.join(map(str, looped[:10]))}. "
            "Give one of them a parent outside the circle.",
            reason="cycle",
            nodeIds=looped[:50],
        )
    return ordered


def _incoming(item: Any, parent: int | None, parent_id: Any) -> Incoming:
    if not isinstance(item, dict):
        _refuse("holds a node that is not an object")
    node_id, kind, payload = item.get("nodeId"), item.get("payloadType"), item.get("payload", {})
    where = "a node without nodeId" if node_id is None else f"node {node_id!r}"
    if node_id is not None and (not isinstance(node_id, str) or not 0 < len(node_id) <= 255):
        _refuse(f"has {where}: nodeId is a text of 1 to 255 characters")
    if not isinstance(kind, str) or not kind:
        _refuse(f"has {where}{' and' if node_id is None else ''} without payloadType{_SHAPE}")
    if not isinstance(payload, dict):
        _refuse(f"has {where} whose payload is not an object")
    if parent_id is not None and not isinstance(parent_id, str):
        _refuse(f"has {where} whose parentId is not one id: a node has exactly one parent")
    unknown = [key for key in item if key not in _NODE_KEYS]
    if unknown:
        _refuse(
            f"has {where} with unknown keys {', '.join(map(repr, unknown))}; properties belong in 'payload'{_SHAPE}"
        )
    tags, group = item.get("tags"), item.get("payloadGroup")
    if group is not None and not isinstance(group, str):
        _refuse(f"has {where} whose payloadGroup is not a text")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        _refuse(f"has {where} whose tags are not a list of texts")
    return Incoming(
        node_id=node_id,
        parent=parent,
        parent_id=parent_id,
        type=kind,
        payload=detached(payload, f"json {where} payload", MAX_NESTING),
        tags=None if tags is None else frozenset(tags),
        group=group,
        is_cut="moreChildren" in item,
    )


def _ids_of(by_parent: Mapping[str | None, list[Any]]) -> list[str]:
    return [str(item.get("nodeId")) for items in by_parent.values() for item in items]


def _refuse_twins(node_ids: Sequence[str | None]) -> None:
    twins = {node_id: None for node_id, times in Counter(node_ids).items() if times > 1 and node_id is not None}
    if twins:
        raise InvalidArgument(
            f"These ids appear more than once, so their parent is not clear: {', '.join(list(twins)[:10])}. "
            "List every node once, under one parent.",
            reason="duplicate_ids",
            nodeIds=list(twins)[:50],
        )


def _refuse_root_below(found: Sequence[Incoming]) -> None:
    if any(node.node_id == ROOT and (node.parent is not None or node.parent_id is not None) for node in found):
        raise InvalidArgument(
            "The document has the root below another node, which would make a circle. "
            "Put the root at the top, or leave it out.",
            reason="cycle",
            nodeIds=[ROOT],
        )


def _refuse_disagreement(found: Sequence[Incoming]) -> None:
    payloads: dict[str, Payload] = {}
    for node in found:
        if node.group is not None and not identical(payloads.setdefault(node.group, node.payload), node.payload):
            _refuse(f"has nodes of the payloadGroup {node.group!r} with different payloads; those of a group share one")


def _refuse(problem: str) -> NoReturn:
    raise InvalidArgument(f"The document {problem}.", reason="document")
