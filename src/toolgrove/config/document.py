"""Reads a YAML or JSON file within bounds, and remembers where in it everything stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from apcore_files.app_name import is_app, parts
from toolgrove.config.app_project import project_of
from toolgrove.config.problems import ConfigError, Problem, dotted
from toolgrove.config.problems import Path as Loc
from toolgrove.notation import strict_json

MAX_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_VALUES = 100_000
"""Values with every alias written out: a few lines of aliases of aliases would be billions."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ConfigDocument(NamedTuple):
    """What a file says, and the line and column of each path in it."""

    content: Any
    places: dict[Loc, tuple[int, int]]


def read(path: Path) -> str:
    """The text of a file, at most MAX_BYTES of UTF-8; ConfigError says what is wrong with it.

    A Python file stands for a project that serves it.
    """
    if is_app(path.name) and parts(str(path))[0].is_file():
        return project_of(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        cure = "" if is_app(path.name) else "; 'toolgrove init' writes one to start from"
        raise _error(path, f"there is no such file{cure}") from None
    except IsADirectoryError:
        raise _error(path, "is a folder; name the file in it") from None
    except OSError as problem:
        raise _error(path, f"cannot be read: {problem.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise _error(path, f"is larger than {MAX_BYTES:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise _error(path, "is not UTF-8 text", line, problem.start - raw.rfind(b"\n", 0, problem.start)) from None


def parse(text: str, path: Path) -> ConfigDocument:
    """What the text says; its name decides between YAML and JSON."""
    document = _parse_json(text, path) if path.suffix.lower() == ".json" else _parse_yaml(text, path)
    if document.content is None:
        return ConfigDocument({}, {})
    if not isinstance(document.content, dict):
        raise _error(path, "must be a mapping of keys to values, such as 'agents: …'", 1, 1)
    return document


def _error(path: Path, message: str, line: int = 0, column: int = 0, *, at: str = "") -> ConfigError:
    return ConfigError(str(path), [Problem(path=at, message=message, line=line, column=column)])


# JSON ---------------------------------------------------------------------------------------------


def _parse_json(text: str, path: Path) -> ConfigDocument:
    try:
        content = strict_json.decode(text, unique=True) if text.strip() else None
    except json.JSONDecodeError as problem:
        raise _error(path, f"is not JSON: {problem.msg}", problem.lineno, problem.colno) from None
    except strict_json.TooDeep:
        raise _error(path, f"is nested more than {MAX_DEPTH} deep") from None
    except ValueError as problem:
        raise _error(path, str(problem)) from None
    return ConfigDocument(content, {})


# YAML ---------------------------------------------------------------------------------------------


def _parse_yaml(text: str, path: Path) -> ConfigDocument:
    try:
        _check_bounds(text, path)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return ConfigDocument(None, {})
            places: dict[Loc, tuple[int, int]] = {}
            for loc, key in _keys(node, ()):
                if loc in places:
                    line, column = _spot(key.start_mark)
                    first = places[loc][0]
                    raise _error(path, f"the key stands twice, first in line {first}", line, column, at=dotted(loc))
                places[loc] = _spot(key.start_mark)
            return ConfigDocument(loader.construct_document(node), places)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        # Without the snippet that PyYAML would show: the line may hold a secret.
        mark = problem.problem_mark or problem.context_mark
        line, column = _spot(mark) if mark is not None else (0, 0)
        said = " ".join(part for part in (problem.context, problem.problem) if part)
        raise _error(path, f"is not YAML: {said}", line, column) from None
    except yaml.YAMLError as problem:
        raise _error(path, f"is not YAML: {getattr(problem, 'reason', 'it cannot be read')}") from None
    except ConfigError:
        raise
    except ValueError as problem:  # something that looks like a date or a number and is not
        raise _error(path, f"is not YAML: {problem}") from None


def _spot(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _check_bounds(text: str, path: Path) -> None:
    """Count what the document would hold with its aliases written out, before anything is built."""
    sizes: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                line, column = _spot(event.start_mark)
                raise _error(path, f"alias {event.anchor!r} names nothing that stands before it", line, column)
            total += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, total))
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = opened.pop()
            if anchor:
                sizes[anchor] = total - start + 1
        if len(opened) > MAX_DEPTH:
            raise _error(path, f"is nested more than {MAX_DEPTH} deep")
        if total > MAX_VALUES:
            raise _error(path, f"holds more than {MAX_VALUES:,} values with its aliases written out")


def _keys(node: yaml.Node, loc: Loc) -> Iterator[tuple[Loc, yaml.Node]]:
    """Every key and item with its path."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*loc, str(key.value))
            yield here, key
            if key.tag != "tag:yaml.org,2002:merge":
                yield from _keys(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield (*loc, at), item
            yield from _keys(item, (*loc, at))
