"""The tree domain does no I/O and knows no transport; no caller's text becomes code anywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import toolgrove

PACKAGE = Path(toolgrove.__file__).parent
FORBIDDEN = {"anyio", "asyncio", "mcp", "apcore", "apcore_mcp", "os", "pathlib", "socket", "subprocess", "logging"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_tree_imports_nothing_that_does_io() -> None:
    for file in (PACKAGE / "tree").rglob("*.py"):
        assert not imported(file) & FORBIDDEN, file.name


def test_nothing_is_evaluated_pickled_or_run_in_a_shell() -> None:
    for file in PACKAGE.rglob("*.py"):
        source = ast.parse(file.read_text())
        called = {
            node.func.id for node in ast.walk(source) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"eval", "exec", "compile", "__import__"}, file.name
        assert not imported(file) & {"pickle", "marshal", "shelve"}, file.name
