"""What work on a tree costs a model stays within its limits; `python -m bench.economy` prints the figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from bench.economy.figure import Figure
from bench.economy.tree_work import WORK

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
async def test_work_on_a_tree_keeps_to_its_limit(work: Callable[[], Awaitable[Sequence[Figure]]]) -> None:
    figures = await work()
    assert figures
    assert [figure.row() for figure in figures if not figure.holds] == []
