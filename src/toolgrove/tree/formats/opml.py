"""OPML, the format of outliners: names and nesting. Documents with a DTD are refused, so no entity is ever expanded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from toolgrove.notation.half_characters import whole_text
from toolgrove.tree.formats.fitting import Shown, cut_note, in_order, title
from toolgrove.tree.formats.lines import Line, refuse
from toolgrove.tree.node import Node
from toolgrove.tree.render import Cut

_FOREIGN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold."""
_EXACT = "_name"
_CUT = "_cut"


def line(node: Node, depth: int, *, short: bool = False) -> str:
    """A node as an element; what XML cannot hold is in an attribute of its own."""
    return f"{'  ' * (depth + 2)}<outline{_attributes(title(node, short=short))}></outline>"


def write(root: Node, shown: Shown, cut: Cut) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<opml version="2.0">', "  <head>"]
    short = cut.payloads > 0
    lines += [
        f"    <title>{escape(_FOREIGN.sub(chr(0xFFFD), title(root, short=short)))}</title>",
        "  </head>",
        "  <body>",
    ]
    open_depths: list[int] = []
    for node, depth in in_order(root, shown):
        while open_depths and open_depths[-1] >= depth:
            lines.append(f"{'  ' * (open_depths.pop() + 2)}</outline>")
        attributes = _attributes(title(node, short=short))
        if shown.get(node.id):
            lines.append(f"{'  ' * (depth + 2)}<outline{attributes}>")
            open_depths.append(depth)
        else:
            lines.append(f"{'  ' * (depth + 2)}<outline{attributes}/>")
    lines += [f"{'  ' * (depth + 2)}</outline>" for depth in reversed(open_depths)]
    note = cut_note(cut)
    if note:
        lines.append(f'    <outline text={quoteattr(note)} {_CUT}="true"/>')
    return "\n".join([*lines, "  </body>", "</opml>", ""])


def _attributes(name: str) -> str:
    name = whole_text(name)  # of an older store
    exact = f" {_EXACT}={quoteattr(json.dumps(name))}" if _FOREIGN.search(name) else ""
    return f" text={quoteattr(_FOREIGN.sub(chr(0xFFFD), name))}{exact}"


def read(text: str) -> Iterator[Line]:
    """The outlines of a document with their depths."""
    found: list[Line] = []
    depth = 0
    # A name that no longer is one after an export was edited by hand is taken as it is written.
    parser = expat.ParserCreate()

    def number() -> int:
        return parser.CurrentLineNumber

    def no_dtd(*_: Any) -> None:
        refuse("opml", number(), "declares a DTD or an entity; send the document without them")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        if tag == "outline":
            if _CUT in attributes:
                found.append(Line(depth=0, name=None, number=number(), is_cut=True))
            else:
                name = attributes.get("text", attributes.get("title", ""))
                found.append(Line(depth=depth, name=_exact(attributes, name), number=number()))
            depth += 1

    def end(tag: str) -> None:
        nonlocal depth
        depth -= tag == "outline"

    parser.StartDoctypeDeclHandler = no_dtd
    parser.EntityDeclHandler = no_dtd
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as problem:
        refuse("opml", problem.lineno, f"is not well-formed XML ({expat.errors.messages.get(problem.code, 'broken')})")
    yield from found


def _exact(attributes: dict[str, str], name: str) -> str:
    try:
        exact = json.loads(attributes.get(_EXACT, "null"))
    except ValueError:
        return name
    return exact if isinstance(exact, str) and _FOREIGN.sub(chr(0xFFFD), exact) == name else name
