"""Lines of code per file, Python and HTML, as `cloc` counts them: no blank lines, comments or docstrings."""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

_SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def html_lines(source: str) -> int:
    text = re.sub(r"<!--.*?-->", "", source, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in text.split("\n"))


def python_lines(source: str) -> int:
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


if __name__ == "__main__":
    total = 0
    counters = {".html": html_lines, ".py": python_lines}
    for path in sorted(path for path in Path(sys.argv[1]).rglob("*") if path.suffix in counters):
        count = counters[path.suffix](path.read_text(encoding="utf-8"))
        total += count
        print(f"{count:5} {path}")
    print(f"{total:5} total")
