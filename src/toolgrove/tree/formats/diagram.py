"""A Mermaid flowchart of a subtree: names and who is below whom."""

from __future__ import annotations

import re

from toolgrove.tree.formats.fitting import Shown, cut_note, in_order, title
from toolgrove.tree.node import Node
from toolgrove.tree.render import Cut

_OWN = re.compile(r'["#<>&`\\;|{}\[\]()]')
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def line(node: Node, depth: int, *, short: bool = False) -> str:
    """About what a node takes: its box, and the arrow to it."""
    return f'  n000000["{_label(node)}"]\n  n000000 --> n000000'


def write(root: Node, shown: Shown, cut: Cut) -> str:
    numbers: dict[str, int] = {}
    lines = ["flowchart TD"]
    for node, depth in in_order(root, shown):
        numbers[node.id] = len(numbers)
        lines.append(f'  n{numbers[node.id]}["{_label(node)}"]')
        if depth and node.parent is not None:
            lines.append(f"  n{numbers[node.parent.id]} --> n{numbers[node.id]}")
    note = cut_note(cut)
    return "\n".join([*lines, *([f"  %% {note}"] if note else []), ""])


def _label(node: Node) -> str:
    """A name in which Mermaid finds nothing of its own; a long one is shortened, since this is a picture."""
    name = _UNSEEN.sub(" ", title(node, short=True))
    return _OWN.sub(lambda found: f"#{ord(found[0])};", name) or " "
