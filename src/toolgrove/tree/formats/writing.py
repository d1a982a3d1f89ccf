"""A subtree as a text, whole or as much of it as fits."""

from __future__ import annotations

import json
from collections.abc import Callable

from toolgrove.tree.formats import diagram, markdown, opml, table
from toolgrove.tree.formats.fitting import Shown, cut_note, fitting, in_order
from toolgrove.tree.node import Node
from toolgrove.tree.property_path import EVERYTHING
from toolgrove.tree.render import CHARS_PER_TOKEN, ENVELOPE, Cut, node_json
from toolgrove.tree.render import line as outline_line

_SMALLER = 0.8
_ROUNDS = 40
Write = Callable[[Node, Shown, Cut], str]


def _line(node: Node, depth: int) -> str:
    return outline_line(node_json(node, EVERYTHING), depth, node.children_count)


def _outline(root: Node, shown: Shown, cut: Cut) -> str:
    lines: list[str] = []
    for node, depth in in_order(root, shown):
        form = node_json(node, EVERYTHING)
        if cut.payloads and node is root:
            form["payload"] = {}
        lines.append(outline_line(form, depth, node.children_count - len(shown.get(node.id, ()))))
    note = cut_note(cut)
    return "\n".join([*([f"# {note}"] if note else []), *lines])


_FORMS: dict[str, tuple[Callable[[Node, int], str], Write]] = {
    "outline": (_line, _outline),
    "markdown": (markdown.line, markdown.write),
    "opml": (opml.line, opml.write),
    "csv": (table.line, table.write),
    "mermaid": (diagram.line, diagram.write),
}


def write_text(root: Node, form: str, *, max_tokens: int | None) -> tuple[str, Cut]:
    """The text, and what a budget left out of it."""
    says, write = _FORMS[form]
    limit = None if max_tokens is None else max_tokens * CHARS_PER_TOKEN - ENVELOPE
    room = limit
    for _ in range(_ROUNDS):
        shown, cut = fitting(root, says, room)
        text = write(root, shown, cut)
        if limit is None or room is None or len(json.dumps(text)) <= limit:
            return text, cut
        # What a text has around its lines is not known before: the names of columns, ends of elements.
        room = int(room * _SMALLER) if room > ENVELOPE else 0
        if not room:
            break
    shown, cut = fitting(root, says, 0)
    cut.payloads += 1
    return write(root, shown, cut), cut
