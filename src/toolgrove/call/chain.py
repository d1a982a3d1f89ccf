"""Folds steps into one function; the first step is the outermost."""

from __future__ import annotations

from collections.abc import Iterable

from toolgrove.types import Call, Next, Result, Step


def fold(steps: Iterable[Step], innermost: Next) -> Next:
    """One function that runs the steps in order, then the call itself."""
    chain = innermost
    for step in reversed(tuple(steps)):
        chain = _bind(step, chain)
    return chain


def _bind(step: Step, onward: Next) -> Next:
    async def run(call: Call) -> Result:
        return await step(call, onward)

    return run
