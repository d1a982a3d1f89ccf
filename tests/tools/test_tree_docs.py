"""The documentation says what the code does: its snippets run, its reference and grammar are real."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib.util
import inspect
import io
import re
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from toolgrove.tree.dsl import parse, parser

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


async def run(code: CodeType, names: dict[str, Any]) -> None:
    result = FunctionType(code, names)()
    if inspect.iscoroutine(result):
        await result


def test_every_block_of_the_tour_runs_and_prints_what_it_says() -> None:
    names: dict[str, Any] = {}

    async def tour() -> None:
        for block in blocks("tree.md", "python"):
            code = compile(block, "docs/tree.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                await run(code, names)
            expected = [line[4:] for line in block.splitlines() if line.startswith("# → ")]
            assert out.getvalue().splitlines() == expected

    asyncio.run(tour())


def test_the_tool_reference_is_the_one_that_the_declarations_give() -> None:
    spec = importlib.util.spec_from_file_location("tree_reference", ROOT / "tools" / "tree_reference.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (ROOT / "docs" / "tree-tools.md").read_text() == script.reference(), "run tools/tree_reference.py"


def test_the_grammar_in_the_docs_is_the_parsers_own() -> None:
    grammar = blocks("tree-dsl.md", "text")[1].strip()
    assert grammar in (parser.__doc__ or "")


def test_every_query_in_the_docs_can_be_read() -> None:
    for query in blocks("tree-dsl.md", "text")[0].strip().splitlines():
        parse(query)
