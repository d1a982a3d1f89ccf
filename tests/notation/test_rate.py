"""Rates as people write them."""

from __future__ import annotations

import pytest

from toolgrove.notation.rate import Rate, read_rate


@pytest.mark.parametrize(
    ("text", "amount", "seconds"),
    [
        ("60/minute", 60, 60),
        ("1 per second", 1, 1),
        ("100 / 2 hours", 100, 7_200),
        (" 5/Day ", 5, 86_400),
        ("10 PER 3 months", 10, 90 * 86_400),
        ("0/minute", 0, 60),
    ],
)
def test_a_rate_is_so_many_in_so_many_seconds(text: str, amount: int, seconds: int) -> None:
    assert read_rate(text) == Rate(amount, seconds)


@pytest.mark.parametrize(
    "text",
    ["", "60", "often", "60/fortnight", "-1/minute", "1/0 minutes", "1/second; 5/minute", "9" * 10 + "/day", "1/s"],
)
def test_anything_else_is_refused_whole(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate like 60/minute"):
        read_rate(text)
