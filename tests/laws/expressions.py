"""The regular expressions of the source, how each is used, and text that is made to stop each of them.

They are found by reading the source, so that none can be forgotten. One that is put together while the program runs is
listed in `PUT_TOGETHER`, with examples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _constants as ops  # the one reader of expressions that there is
from re import _parser as reader
from typing import Any

from toolgrove.pool.mcp.scopes import _FIELD

SRC = Path(__file__).parents[2] / "src"
_METHODS = frozenset(("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"))
PUT_TOGETHER: dict[str, tuple[str, ...]] = {
    'toolgrove.pool.globs: "|".join(f"({translate(pattern)})" for pattern in self._rest)': (
        "|".join(f"({translate(glob)})" for glob in ("a*[0-9]*b*?c", "*_?et_*[!x]*", "??*?*")),
    ),
    "toolgrove.pool.http.openapi.credentials: rf\"[?&]{re.escape(self.value.partition('=')[0])}=\"": ("[?&]api_key=",),
    "toolgrove.pool.mcp.scopes: _FIELD.format(name=name)": (_FIELD.format(name="scope"),),
}
"""By module and source, what such an expression may become."""


@dataclass(frozen=True, kw_only=True)
class Expression:
    """One expression of the source, with one of the ways in which it is used."""

    place: str
    pattern: str | bytes
    flags: int
    method: str

    @property
    def use(self) -> Callable[[Any], object]:
        """Apply it to a text, to the end of its work."""
        compiled = re.compile(self.pattern, self.flags)
        if self.method in ("match", "fullmatch", "search"):
            found: Callable[[Any], object] = getattr(compiled, self.method)
            return found
        return lambda text: sum(1 for _ in compiled.finditer(text))

    def text(self, units: str) -> Any:
        """What it can be applied to."""
        return units.encode("latin-1", "replace") if isinstance(self.pattern, bytes) else units


@cache
def expressions() -> tuple[Expression, ...]:
    """Every expression of the source, once for each way in which it is used."""
    modules = [_Module(path) for path in sorted(SRC.rglob("*.py")) if _CALL in path.read_text()]
    return tuple(
        Expression(place=f"{module.name}:{call.lineno}", pattern=pattern, flags=flags, method=method)
        for module in modules
        for call in module.calls
        for pattern, flags in module.read(call)
        for method in sorted(module.uses(call, modules))
    )


_CALL = "import re\n"
_FLAGS = re.compile(r"re\.[A-Z]+(?: \| re\.[A-Z]+)*")


class _Module:
    """A module that has expressions."""

    def __init__(self, path: Path) -> None:
        self.name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        self._source = path.read_text()
        nodes = list(ast.walk(ast.parse(self._source)))
        self.calls = [node for node in nodes if isinstance(node, ast.Call) and _called(node)]
        self._named = {
            id(node.value): _name(target) for node in nodes if isinstance(node, ast.Assign) for target in node.targets
        } | {id(node.value): str(node.arg) for node in nodes if isinstance(node, ast.keyword)}
        self._imported = {one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
        attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
        called = {id(node.value) for node in attributes}
        self._methods: dict[str, set[str]] = {}
        for node in attributes:
            if node.attr in _METHODS:
                self._methods.setdefault(_name(node.value), set()).add(node.attr)
        for one in nodes:
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and id(one) not in called:
                self._methods.setdefault(one.id, set()).add("finditer")  # it is handed about

    def read(self, call: ast.Call) -> Iterator[tuple[str | bytes, int]]:
        """The expression that a call makes or uses, with its flags."""
        flags = [
            one for one in (*call.args[1:], *(key.value for key in call.keywords)) if _FLAGS.fullmatch(ast.unparse(one))
        ]
        number = sum(int(eval(ast.unparse(one), {"re": re})) for one in flags)
        text = str(ast.get_source_segment(self._source, call.args[0]))
        examples = PUT_TOGETHER.get(f"{self.name}: {text}")
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str | bytes):
            yield call.args[0].value, number
        elif examples is not None:
            yield from ((one, number) for one in examples)
        else:
            try:
                value = eval(f"({text})", vars(import_module(self.name)))
            except NameError:
                raise AssertionError(f"{self.name}: {text} is put together: list it, with examples") from None
            if not isinstance(value, re.Pattern):  # else it is compiled elsewhere, and found there
                yield value, number

    def uses(self, call: ast.Call, modules: Sequence[_Module]) -> set[str]:
        """How it is used, anywhere."""
        if _called(call) != "compile":
            return {_called(call)}
        name = self._named.get(id(call), "")
        found = set(self._methods.get(name, ()))
        if name.isupper() and not name.startswith("_"):
            found = found.union(*(one._methods.get(name, ()) for one in modules if name in one._imported))
            found.add("finditer")  # whoever imports it may have no expression of its own
        return found or {"finditer"}


def _name(node: ast.AST) -> str:
    """The last name of what stands before a dot, or is assigned to."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _called(call: ast.Call) -> str:
    """The function of `re` that is called."""
    is_re = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re"
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method if is_re and method in _METHODS | {"compile"} else ""


# Text to stop them -------------------------------------------------------------------------------

_RUNS = (
    "a",
    "A",
    "0",
    " ",
    "\n",
    "\r\n",
    "_",
    "-",
    ".",
    "<",
    ">",
    '"',
    "'",
    "\\",
    "{",
    "[",
    "(",
    "%",
    "/",
    "=",
    "é",
    "😀",
)
_PICKS = (0, 1, 2, 5)
_MISS = "\x01"


def hostile(expression: Expression, size: int) -> Iterator[Any]:
    """Long runs, and near misses made of what the expression itself looks for."""
    tree = reader.parse(expression.pattern, expression.flags)
    shapes = {(before, unit) for pick in _PICKS for before, unit in _shapes(tree, pick, "")}
    shapes |= {("", run) for run in (*_RUNS, *_alphabet(tree))}
    heads = sorted({before[-1:] for before, _ in shapes if before})[:8]
    shapes |= {("", head + 8 * run) for head in heads for run in (" ", "a", head)}
    for before, unit in sorted(shapes):
        if unit and len(before) < size // 2:
            run = before + unit * ((size - len(before)) // len(unit))
            yield expression.text(run)
            yield expression.text(run + _MISS)


def _shapes(sequence: Iterable[Any], pick: int, before: str) -> Iterator[tuple[str, str]]:
    """What stands before each part, and what repeats there: the part, or all up to it."""
    here = before
    for kind, argument in sequence:
        sample = _sample([(kind, argument)], pick)
        yield here, sample
        yield "", here + sample
        yield before, (here + sample).removeprefix(before)
        for inner in _inside(kind, argument):
            yield from _shapes(inner, pick, here)
        here += sample


def _inside(kind: Any, argument: Any) -> list[Any]:
    if kind is ops.BRANCH:
        return list(argument[1])
    if kind in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return [argument[2]]
    if kind is ops.SUBPATTERN:
        return [argument[3]]
    if kind is ops.ATOMIC_GROUP:
        return [argument]
    return [argument[1]] if kind in (ops.ASSERT, ops.ASSERT_NOT) else []


def _sample(sequence: Iterable[Any], pick: int) -> str:
    """A text that a part of an expression finds, or nearly finds; `pick` chooses among what it allows."""
    return "".join(_one(kind, argument, pick) for kind, argument in sequence)


def _one(kind: Any, argument: Any, pick: int) -> str:
    if kind is ops.LITERAL:
        return chr(int(argument))
    if kind is ops.NOT_LITERAL:
        return "b" if argument == ord("a") else "a"
    if kind is ops.ANY:
        return "a"
    if kind is ops.IN:
        return _member(argument, pick)
    if kind is ops.BRANCH:
        return _sample(argument[1][pick % len(argument[1])], pick)
    if kind in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return _sample(argument[2], pick) * max(int(argument[0]), 1)
    return _sample(_inside(kind, argument)[0], pick) if kind in (ops.SUBPATTERN, ops.ATOMIC_GROUP) else ""


_CATEGORIES: dict[Any, str] = {
    ops.CATEGORY_SPACE: " \n\t",
    ops.CATEGORY_WORD: "a_0",
    ops.CATEGORY_DIGIT: "0",
    ops.CATEGORY_NOT_SPACE: "a-",
    ops.CATEGORY_NOT_WORD: "- ",
    ops.CATEGORY_NOT_DIGIT: "a ",
}


def _member(members: list[Any], pick: int) -> str:
    """A character of a set."""
    if members[0][0] is ops.NEGATE:
        kept_out = "".join(_member([one], 0) for one in members[1:])
        return next(one for one in "ab0 -_é\x02" if one not in kept_out)
    kind, argument = members[pick % len(members)]
    if kind is ops.LITERAL:
        return chr(argument)
    if kind is ops.RANGE:
        return chr(min(argument[1], argument[0] + pick))
    allowed = _CATEGORIES[argument]
    return allowed[pick % len(allowed)]


def _alphabet(sequence: Iterable[Any]) -> set[str]:
    """One character of each kind that the expression names anywhere."""
    found: set[str] = set()
    for kind, argument in sequence:
        if kind in (ops.LITERAL, ops.IN, ops.NOT_LITERAL):
            found.add(_one(kind, argument, 0))
        for inner in _inside(kind, argument):
            found |= _alphabet(inner)
    return found
