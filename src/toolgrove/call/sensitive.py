"""Which arguments a tool's schema marks as sensitive: they are kept out of every record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARK = "[sensitive]"
_DEFINITIONS = ("$defs", "definitions")
_VALUES = frozenset(("const", "default", "enum", "examples"))
_TELLING = 4
_EVERYTHING = ""
_UNTRACED = "#?"


class Sensitive:
    """The names that a schema marks with `x-sensitive`, `writeOnly` or `format: password`, wherever they stand.

    A name that is marked in one place is hidden in all, and one whose mark cannot be traced is hidden with all that
    holds it: too much rather than too little.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._names: set[str] = set()
        self._references: list[tuple[str, str]] = []
        self._walk(schema, _EVERYTHING)
        if self._names:
            self._names.add(_UNTRACED)
            for _ in self._references:  # one may lead to another
                self._names.update(owner for owner, target in self._references if target in self._names)

    def __bool__(self) -> bool:
        return bool(self._names)

    def hidden(self, arguments: Any) -> tuple[Any, list[str]]:
        """The arguments without what is marked, and the texts that were taken out."""
        if _EVERYTHING in self._names:
            return MARK, _texts(arguments)
        taken: list[str] = []
        return self._hidden(arguments, taken), taken

    def _hidden(self, value: Any, taken: list[str]) -> Any:
        if isinstance(value, list):
            return [self._hidden(item, taken) for item in value]
        if not isinstance(value, dict):
            return value
        shown: dict[Any, Any] = {}
        for name, item in value.items():
            if name in self._names:
                taken.extend(_texts(item))
                shown[name] = MARK
            else:
                shown[name] = self._hidden(item, taken)
        return shown

    def _walk(self, schema: Any, owner: str) -> None:
        """Look for marks in what describes `owner`: a property, a definition, or the arguments as a whole."""
        if isinstance(schema, list):
            for one in schema:
                self._walk(one, owner)
        if not isinstance(schema, Mapping):
            return
        if schema.get("x-sensitive") or schema.get("writeOnly") or schema.get("format") == "password":
            self._names.add(owner)
        for key, inner in schema.items():
            if key == "properties" and isinstance(inner, Mapping):
                for name, one in inner.items():
                    self._walk(one, name)
            elif key in _DEFINITIONS and isinstance(inner, Mapping):
                for name, one in inner.items():
                    self._walk(one, f"#/{key}/{name}")
            elif key in ("$ref", "$dynamicRef"):
                self._references.append((owner, _target(str(inner))))
            elif key not in _VALUES:
                self._walk(inner, owner)


def _target(reference: str) -> str:
    """The owner that a reference leads to."""
    *_, kind, name = ("", *reference.split("/"))
    if reference == "#":
        return _EVERYTHING
    if "~" in name or "%" in name:
        return _UNTRACED
    if kind == "properties":
        return name
    return reference if kind in _DEFINITIONS and reference == f"#/{kind}/{name}" else _UNTRACED


def _texts(value: Any) -> list[str]:
    """The strings and numbers in a value, as texts."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def censored(value: Any, taken: Sequence[str]) -> Any:
    """A value without the texts that were taken out of the arguments; short ones only where they stand alone."""
    if isinstance(value, dict):
        return {name: censored(item, taken) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [censored(item, taken) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if str(value) in taken:
        return MARK
    if isinstance(value, str):
        for text in taken:
            if len(text) >= _TELLING:
                value = value.replace(text, MARK)
    return value
