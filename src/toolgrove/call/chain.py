"""Folds steps into one function; the first step is the outermost.

A step with nothing to do afterwards is a plain function that returns what follows, so it costs no coroutine.
"""

from __future__ import annotations

import weakref
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

    A call without a tool meets all of them. What is folded for a tool goes when the tool does.
    """

    def __init__(self, steps: Iterable[Step | Only], innermost: Next) -> None:
        self._steps = tuple(steps)
        self._innermost = innermost
        self._whole = self._fold(None)
        self._folded: dict[int, Next] = {}

    def __call__(self, call: Call) -> Awaitable[Result]:
        tool = call.tool
        if tool is None:
            return self._whole(call)
        folded = self._folded.get(id(tool))
        if folded is None:
            folded = self._folded[id(tool)] = self._fold(tool)
            weakref.finalize(tool, self._folded.pop, id(tool)).atexit = False
        return folded(call)

    def _fold(self, tool: Tool | None) -> Next:
        chain = self._innermost
        for step in reversed(self._steps):
            if not isinstance(step, Only):
                chain = _bind(step, chain)
            elif tool is None or step.concerns(tool):
                chain = _bind(step.step, chain)
        return chain


def _bind(step: Any, onward: Next) -> Next:
    # Calling a bound method costs half of calling an object that has `__call__`; a partial, half of a lambda.
    run = step if isinstance(step, FunctionType) else step.__call__
    return partial(run, onward=onward)
