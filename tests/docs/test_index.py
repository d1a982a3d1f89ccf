"""The index of a package: one line of its docstring for every module in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
LINE = re.compile(r"^- ``(\w+)``: \S", re.MULTILINE)
FEW = 3


def modules(package: Path) -> set[str]:
    """The modules and subpackages of a package, by the names that an index gives them."""
    files = {file.stem for file in package.glob("*.py")} - {"__init__", "__main__"}
    return files | {inner.parent.name for inner in package.glob("*/__init__.py")}


def index(package: Path) -> list[str]:
    """The names in the index of a package, in the order in which they stand there."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    return LINE.findall(text or "")


PACKAGES = sorted(file.parent for file in SRC.rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(SRC)))
def test_the_docstring_of_a_package_names_each_of_its_modules_once(package: Path) -> None:
    there, named = modules(package), index(package)
    wanted = there if len(there) > FEW or named else set()
    assert sorted(named) == sorted(wanted), (
        f"the index in {package.relative_to(SRC.parent)}/__init__.py lacks {sorted(wanted.difference(named))}, "
        f"names what is gone {sorted(set(named) - wanted)}, or names one twice; "
        "write one line per module: - ``name``: what it holds"
    )
