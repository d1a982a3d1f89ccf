"""Waiting for servers that are still starting, and telling a person for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from toolgrove.grove import Grove

_LOOK = 0.2


async def all_asked(grove: Grove, tell: Callable[[Sequence[str]], None]) -> None:
    """Wait until every source has answered or is given up; `tell` hears of those that are late, until they come."""

    async def watch() -> None:
        await anyio.sleep(grove.config.startup_budget)
        told: Sequence[str] = ()
        while True:
            late = grove.pool.awaited
            if late and late != told:
                tell(late)
                told = late
            await anyio.sleep(_LOOK)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await grove.pool.snapshot()
        tasks.cancel_scope.cancel()


def still_starting(late: Sequence[str]) -> str:
    """Which servers are being waited for, in a sentence."""
    return f"Waiting for {', '.join(late)}, still starting …"
