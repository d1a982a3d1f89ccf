"""Budgets over time, against a model that looks at the whole past."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolgrove.budgets import MovingWindow, RefillingBudget

STEPS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=60)


@given(steps=STEPS, rate=st.integers(1, 5), burst=st.integers(1, 25))
def test_a_refilling_budget_gives_what_time_has_filled_in_and_never_more_than_its_burst(
    steps: list[tuple[int, int]], rate: int, burst: int
) -> None:
    now = level = 0
    budget = RefillingBudget(rate, burst=burst, monotonic=lambda: now)
    level = burst
    for passed, amount in steps:
        now += passed
        level = min(level + passed * rate, burst)
        assert budget.has(amount) == (amount <= level)
        assert budget.take(amount) == (amount <= level)
        level -= amount if amount <= level else 0


@given(passings=st.lists(st.integers(0, 9), max_size=60), amount=st.integers(1, 5), seconds=st.integers(1, 12))
def test_no_stretch_of_a_moving_window_holds_more_than_its_amount_and_a_wait_is_just_long_enough(
    passings: list[int], amount: int, seconds: int
) -> None:
    now = 0
    window = MovingWindow(amount, seconds, monotonic=lambda: now)
    admitted: list[int] = []
    for passed in passings:
        now += passed
        counted = [one for one in admitted if one > now - seconds]
        wait = window.admit()
        assert (wait is None) == (len(counted) < amount)
        if wait is None:
            admitted.append(now)
        else:
            assert wait == counted[0] + seconds - now > 0
