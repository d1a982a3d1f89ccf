"""Folds steps into one function; the first step is the outermost.

A step with nothing to do afterwards is a plain function that returns what follows, so it costs no coroutine.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import FunctionType
from typing import Any

from toolgrove.types import Next, Step


def fold(steps: Iterable[Step], innermost: Next) -> Next:
    """One function that runs the steps in order, then the call itself."""
    chain = innermost
    for step in reversed(tuple(steps)):
        chain = _bind(step, chain)
    return chain


def _bind(step: Any, onward: Next) -> Next:
    # Calling a bound method costs half of calling an object that has `__call__`; a partial, half of a lambda.
    run = step if isinstance(step, FunctionType) else step.__call__
    return partial(run, onward=onward)
