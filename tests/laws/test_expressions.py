"""Every regular expression in the source reads any text in time that grows as the text does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from laws.expressions import Expression, expressions, hostile

SIZES = (4 * 1024, 16 * 1024, 64 * 1024)
MOST = 0.02
"""Seconds of processor time for the large text."""
MARGIN = 3
"""A loaded machine is so much slower; what grows with the square of the text takes a thousand times as long."""
FLOOR = 0.01
"""So long a machine may be elsewhere, whatever the size."""
_WORST = 4


def seconds(use: Callable[[Any], object], text: Any) -> float:
    """The processor time of this thread alone: how busy the machine is does not count."""
    before = time.thread_time()
    use(text)
    return time.thread_time() - before


def shown(one: Expression) -> str:
    return f"{one.place} {one.method}"


@pytest.mark.parametrize("one", expressions(), ids=shown)
def test_an_expression_reads_64_kib_of_hostile_text_within_20_ms(one: Expression) -> None:
    """The smallest texts first: what fails with one would not come to an end with the largest."""
    use, worst = one.use, set[int]()
    for size in SIZES:
        took = list[tuple[float, int]]()
        for number, text in enumerate(hostile(one, size)):
            if not worst or number in worst:
                spent = min(seconds(use, text) for _ in range(1 + bool(worst)))
                assert spent < MARGIN * MOST * size / SIZES[-1] + FLOOR, f"{text[:40]!r}…, {size} long: {spent:.3f} s"
                took.append((spent, number))
        worst = {number for _, number in sorted(took, reverse=True)[:_WORST]}
