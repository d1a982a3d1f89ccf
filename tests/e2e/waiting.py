"""Waiting for something to become true, with a bound instead of a sleep."""

import time
from collections.abc import Callable

import anyio

DEADLINE = 20.0
_STEP = 0.01


def wait_until(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not true within {seconds} s"
        time.sleep(_STEP)


async def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(_STEP)
