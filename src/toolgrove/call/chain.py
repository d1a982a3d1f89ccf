"""Folds steps into one function; the first step is the outermost.

A step with nothing to do afterwards is a plain function that returns what follows, so it costs no coroutine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from toolgrove.types import Call, Next, Result, Step, Tool


class Only(NamedTuple):
    """A step that concerns some tools; a call of any other it would do nothing with but pass it on."""

    concerns: Callable[[Tool], bool]
    step: Step


class Chain:
    """Runs the steps in order, then the call itself; those that do not concern its tool are left out.

    A call without a tool meets all of them.
    """

    def __init__(self, steps: Iterable[Step | Only], innermost: Next) -> None:
        self._steps = tuple(steps)
        self._innermost = innermost
        self._concerns = [step.concerns for step in self._steps if isinstance(step, Only)]
        self._whole = self._fold([True] * len(self._concerns))
        self._folded: dict[tuple[bool, ...], Next] = {}

    def __call__(self, call: Call) -> Awaitable[Result]:
        tool = call.tool
        if tool is None:
            return self._whole(call)
        concerned = tuple([concerns(tool) for concerns in self._concerns])
        folded = self._folded.get(concerned)
        if folded is None:
            folded = self._folded[concerned] = self._fold(concerned)
        return folded(call)

    def _fold(self, concerned: Iterable[bool]) -> Next:
        is_met = iter(concerned)
        met = [step for step in self._steps if not isinstance(step, Only) or next(is_met)]
        chain = self._innermost
        for step in reversed(met):
            chain = _bind(step.step if isinstance(step, Only) else step, chain)
        return chain


def _bind(step: Any, onward: Next) -> Next:
    # Calling a bound method costs half of calling an object that has `__call__`; a partial, half of a lambda.
    run = step if isinstance(step, FunctionType) else step.__call__
    return partial(run, onward=onward)
