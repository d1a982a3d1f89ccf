"""Nested Markdown lists: names and nesting, whatever the names hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgrove.tree.formats.fitting import Shown, cut_note, in_order, is_cut_note, title
from toolgrove.tree.formats.lines import Line, refuse
from toolgrove.tree.node import Node
from toolgrove.tree.render import Cut

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>&#|~]")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]|^\s|\s$")
_WRITTEN = re.compile(r"\\([!-/:-@\[-`{-~])|&#(\d{1,7});|<br\s*/?>")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)$")
_COMMENT = re.compile(r"\s*<!--(.*)-->\s*$")
_TAB = 4
_NESTED = 2


def line(node: Node, depth: int, *, short: bool = False) -> str:
    """A node as an item of a list."""
    return f"{'  ' * depth}- {_written(title(node, short=short))}"


def write(root: Node, shown: Shown, cut: Cut) -> str:
    lines = [line(node, depth, short=cut.payloads > 0) for node, depth in in_order(root, shown)]
    note = cut_note(cut)
    return "\n".join([*([f"<!-- {note} -->"] if note else []), *lines, ""])


def read(text: str) -> Iterator[Line]:
    """The items and headings of a text with their depths; an item belongs to the heading above it."""
    headings: list[int] = []
    indents: list[int] = []
    pending: Line | None = None
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        comment = _COMMENT.match(raw)
        item, heading = _ITEM.match(raw), _HEADING.match(raw)
        if not raw.strip() or comment is not None:
            if comment is not None and is_cut_note(comment[1]):
                yield Line(depth=0, name=None, number=number, is_cut=True)
            continue
        if heading is None and item is None:
            if pending is None or not raw[0].isspace():
                refuse("markdown", number, "is neither a list item ('- name') nor a heading ('# name')")
            pending = pending._replace(name=f"{pending.name} {_read(raw.strip())}".strip())
            continue
        if pending is not None:
            yield pending
        if heading is not None:
            level = len(heading[1])
            headings = [one for one in headings if one < level]
            pending = Line(depth=len(headings), name=_read(_without_closing(heading[2])), number=number)
            headings.append(level)
            indents = []
            continue
        assert item is not None  # noqa: S101 - one of the two is there
        indent = len(item[1].expandtabs(_TAB))
        indents = [one for one in indents if one + _NESTED <= indent]
        pending = Line(depth=len(headings) + len(indents), name=_read((item[2] or "").rstrip(" \t")), number=number)
        indents.append(indent)
    if pending is not None:
        yield pending


def _without_closing(heading: str) -> str:
    """A heading without the marks that may stand behind it."""
    text = heading.rstrip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare != text and (not bare or bare[-1] in " \t") else text


def _written(name: str) -> str:
    """A name on one line, in which nothing is formatting."""
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", name)
    return _UNSEEN.sub(lambda found: "<br>" if found[0] == "\n" else f"&#{ord(found[0])};", escaped)


def _read(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        if found[2] is None:
            return "\n"
        code = int(found[2])
        return chr(code) if code < 0x110000 else found[0]

    return _WRITTEN.sub(plain, text)
