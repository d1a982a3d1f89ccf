"""The tables of a journal read by nobody's code but this: the tree of every moment, taken back change by change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

SAME = 0
"""Stands for a payload that a change left alone."""
Plain = dict[str, Any]


def unwound(nodes: Sequence[str], journal: Sequence[str]) -> Iterator[tuple[int, Plain]]:
    """The tree after each change, the newest first, and at last the one before all of them; by bodies of rows."""
    images: dict[str, Any] = {body[0]: body[1:] for body in map(json.loads, nodes)}
    images.setdefault("root", [None, 0, "Root", {}, [], None])
    for _, _, commits, *_ in map(json.loads, reversed(journal)):
        for seq, _, before, *_ in reversed(commits):
            yield seq, plain(images)
            for name, image in before.items():
                if image is None:
                    images.pop(name)
                else:
                    payload = images[name][3] if image[3] == SAME else image[3]
                    images[name] = [*image[:3], payload, *image[4:]]
    yield 0, plain(images)


def plain(images: dict[str, Any]) -> Plain:
    """Nodes as a nested document: what there is, in the order in which it stands."""
    made: dict[str, Plain] = {name: _node(name, *image) for name, image in images.items()}
    for name, image in sorted(images.items(), key=lambda one: Fraction(one[1][1])):
        if image[0] is not None:
            made[image[0]]["children"].append(made[name])
    return made["root"]


def exported(document: str) -> Plain:
    """The same of an export."""
    return _exported(json.loads(document))


def _exported(node: Any) -> Plain:
    found = _node(node["nodeId"], None, 0, node["payloadType"], node["payload"], node.get("tags", []), None)
    return {**found, "children": [_exported(one) for one in node.get("children", ())]}


def _node(name: str, _parent: Any, _rank: Any, kind: str, payload: Any, tags: Sequence[str], _group: Any) -> Plain:
    return {"id": name, "type": kind, "payload": copy.deepcopy(payload), "tags": sorted(tags), "children": []}
