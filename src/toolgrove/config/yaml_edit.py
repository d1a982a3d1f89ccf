"""Edits of a YAML text that touch nothing else: comments, quotes and order stay as a person wrote them.

`ruamel.yaml` tells where everything stands; the text between is kept byte for byte.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Way = tuple[str, ...]
"""The keys that lead to a value, from the top of the file."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


class CannotEdit(ValueError):
    """The text is written in a way that is not edited from here; the message says which."""


@dataclass(frozen=True, slots=True)
class YamlText:
    """A text, and the texts that it would be with one thing changed."""

    text: str

    def has(self, way: Way) -> bool:
        """Whether something stands at `way`."""
        return self._find(way) is not None

    def with_item(self, way: Way, item: str) -> YamlText:
        """The text with one more item in the list at `way`; a list that is not there is made."""
        found = self._find(way)
        if found is None:
            return self._with_key(way, f"[{written(item)}]")
        if not isinstance(found, SequenceNode):
            raise CannotEdit(f"{'.'.join(way)} is no list")
        if not found.value:
            return self._between(found.start_mark.index, found.end_mark.index, f"[{written(item)}]")
        last = found.value[-1]
        if found.flow_style:
            return self._between(last.end_mark.index, last.end_mark.index, f", {written(item)}")
        return self._new_line(last, found.start_mark.column, f"- {written(item)}")

    def without_item(self, way: Way, item: str) -> YamlText:
        """The text without an item of the list at `way`."""
        found = self._find(way)
        items = found.value if isinstance(found, SequenceNode) else []
        at = next((at for at, one in enumerate(items) if isinstance(one, ScalarNode) and one.value == item), None)
        if at is None or not isinstance(found, SequenceNode):
            raise CannotEdit(f"{'.'.join(way)} does not hold {item!r} itself")
        one = items[at]
        if found.flow_style:
            if at + 1 < len(items):
                return self._between(one.start_mark.index, items[at + 1].start_mark.index, "")
            return self._between(items[at - 1].end_mark.index if at else one.start_mark.index, one.end_mark.index, "")
        if len(items) == 1:
            before = self.text.rindex(":", 0, found.start_mark.index) + 1
            return self._between(before, one.end_mark.index, " []")
        begin = self.text.rindex("\n", 0, one.start_mark.index) + 1
        if "-" not in self.text[begin : one.start_mark.index]:
            raise CannotEdit(f"{'.'.join(way)} is written over several lines")
        return self._between(begin, self._line_end(one) + 1, "")

    def with_value(self, way: Way, value: bool | str) -> YamlText:
        """The text with a plain value at `way`."""
        shown = str(value).lower() if isinstance(value, bool) else written(value)
        found = self._find(way)
        if found is None:
            return self._with_key(way, shown)
        if not isinstance(found, ScalarNode):
            raise CannotEdit(f"{'.'.join(way)} is no plain value")
        return self._between(found.start_mark.index, found.end_mark.index, shown)

    def with_mapping(self, way: Way) -> YamlText:
        """The text with an empty mapping at `way`, where nothing is."""
        return self._with_key(way, "{}") if self._find(way) is None else self

    def lines_of(self, way: Way) -> tuple[int, int]:
        """The first line of the key that `way` ends in, and the line after the last of its value; both from 0."""
        parent = self._find(way[:-1])
        for key, value in parent.value if isinstance(parent, MappingNode) else ():
            if key.value == way[-1]:
                end = self._line_end(_last_leaf(value))
                return key.start_mark.line, self.text.count("\n", 0, end) + 1
        raise CannotEdit(f"{'.'.join(way)} is not in the file")

    def _with_key(self, way: Way, shown: str) -> YamlText:
        """The text with a new key at the end of the mapping above; what is missing on the way is made."""
        parent = self._find(way[:-1])
        entry = f"{written(way[-1])}: {shown}"
        if parent is None and len(way) > 1:
            return self._with_key(way[:-1], f"{{{entry}}}")
        if not isinstance(parent, MappingNode):
            raise CannotEdit(f"{'.'.join(way[:-1])} is no mapping")
        if not parent.value:
            return self._between(parent.start_mark.index, parent.end_mark.index, f"{{{entry}}}")
        last_key, last = parent.value[-1]
        if parent.flow_style:
            return self._between(last.end_mark.index, last.end_mark.index, f", {entry}")
        return self._new_line(_later(last_key, last), last_key.start_mark.column, entry)

    def _new_line(self, after: Node, column: int, shown: str) -> YamlText:
        end = self._line_end(_last_leaf(after))
        return self._between(end, end, f"\n{' ' * column}{shown}")

    def _line_end(self, node: Node) -> int:
        """Where the line ends that a value ends in."""
        last = node.end_mark.index
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            return len(self.text[:last].rstrip("\n"))
        end = self.text.find("\n", last)
        return len(self.text) if end < 0 else end

    def _between(self, begin: int, end: int, shown: str) -> YamlText:
        return YamlText(self.text[:begin] + shown + self.text[end:])

    def _find(self, way: Way) -> Node | None:
        node = self._composed()
        for step in way:
            if node is None or not isinstance(node, MappingNode):
                return None
            node = next((value for key, value in node.value if getattr(key, "value", None) == step), None)
        return node

    def _composed(self) -> Node | None:
        reader: Any = YAML(typ="rt")
        try:
            node: Node | None = reader.compose(self.text)
        except YAMLError:
            raise CannotEdit("the file cannot be read") from None
        return node


def written(text: str) -> str:
    """A text as YAML writes it in one line, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def _last_leaf(node: Node) -> Node:
    """What of a value stands last in the text."""
    while isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last if isinstance(node, SequenceNode) else _later(*last)
    return node


def _later(key: Node, value: Node) -> Node:
    """The value, unless it stands elsewhere (an alias) or nowhere."""
    return value if value.end_mark.index > key.end_mark.index else key
