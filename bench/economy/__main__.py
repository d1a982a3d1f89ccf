"""`python -m bench.economy`: prints what work costs a model, each figure beside its limit."""

from __future__ import annotations

import sys

import anyio

from bench.economy.tree_work import WORK


async def main() -> int:
    figures = [figure for work in WORK for figure in await work()]
    for figure in figures:
        print(figure.row())
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(anyio.run(main))
