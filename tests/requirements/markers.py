"""Which tests carry which requirement ids, read from the source: running one file still sees the markers of all."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def carriers(root: Path = TESTS) -> dict[str, list[str]]:
    """Requirement id to the tests that carry it, as `tests/file.py::name`."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("test_*.py")):
        name = path.relative_to(root.parent).as_posix()
        for test, requirement in _marked(ast.parse(path.read_text(), name)):
            tests = found.setdefault(requirement, [])
            if f"{name}::{test}" not in tests:
                tests.append(f"{name}::{test}")
    return found


def _marked(module: ast.Module) -> Iterator[tuple[str, str]]:
    everywhere = [
        requirement
        for node in module.body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        for requirement in _ids(node.value)
    ]
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for requirement in [*everywhere, *(i for decorator in node.decorator_list for i in _ids(decorator))]:
                yield node.name, requirement


def _ids(expression: ast.expr) -> Iterator[str]:
    """The ids of every `pytest.mark.requirement(...)` in an expression, those inside `pytest.param(marks=...)` too."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise ValueError(f"line {node.lineno}: a requirement id must be a plain string")
                yield argument.value
