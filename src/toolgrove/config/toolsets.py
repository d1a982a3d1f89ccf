"""Named sets of tools: `@core`, `@read` and `@all`, and those of the project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolgrove.errors import closest

CORE, READ, ALL = "@core", "@read", "@all"
BUILT_IN = (CORE, READ, ALL)


def is_set(pattern: str) -> bool:
    """Whether a pattern is the name of a set; no tool has such a name."""
    return pattern.startswith("@")


def set_name(pattern: str) -> str:
    """The name of a set as the section `toolsets` has it."""
    return pattern[1:]


def check_sets(named: Mapping[str, Sequence[str]]) -> None:
    """Refuse sets that take a name of ours, name one that does not exist, or hold themselves."""
    for name in named:
        if f"@{name}" in BUILT_IN:
            raise ValueError(f"toolsets.{name}: {f'@{name}'!r} is a built-in set; choose another name")
    for name, patterns in named.items():
        check_patterns(f"toolsets.{name}", patterns, named)
    for name in named:
        if f"@{name}" in _held(name, named, set()):
            raise ValueError(f"toolsets.{name} holds itself; take {f'@{name}'!r} out of it")


def check_patterns(where: str, patterns: Iterable[str], named: Mapping[str, Sequence[str]]) -> None:
    """Refuse the name of a set that there is not."""
    known = [*BUILT_IN, *(f"@{name}" for name in named)]
    for pattern in filter(is_set, patterns):
        if pattern not in known:
            near = closest(pattern, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{where}: there is no toolset {pattern!r}; {hint}")


def check_no_set(where: str, patterns: Iterable[str]) -> None:
    """Refuse a set where only names and globs are understood."""
    for pattern in filter(is_set, patterns):
        raise ValueError(f"{where}: {pattern!r} is a toolset; here only names and globs of tools are understood")


def _held(name: str, named: Mapping[str, Sequence[str]], seen: set[str]) -> Iterator[str]:
    for pattern in filter(is_set, named.get(name, ())):
        yield pattern
        if pattern not in seen:
            seen.add(pattern)
            yield from _held(set_name(pattern), named, seen)
