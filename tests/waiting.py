"""Waiting for something to become true, with a bound instead of a sleep."""

import inspect
import time
from collections.abc import Callable

import anyio

DEADLINE = 60.0
"""Of everything that is waited for, on a busy machine; no test measures time."""

_STEP = 0.02


def wait_until(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not true within {seconds} s"
        time.sleep(_STEP)


async def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Wait for a plain condition, or for one that has to be awaited."""
    with anyio.fail_after(seconds):
        while not (await outcome if inspect.isawaitable(outcome := condition()) else outcome):
            await anyio.sleep(_STEP)
