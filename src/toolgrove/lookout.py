"""Looks twice a second whether what a project keeps can still be kept, though nobody asks for it just now."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

log = logging.getLogger("toolgrove.store")
LOOK = 0.5
"""How many seconds pass between two looks."""


@asynccontextmanager
async def looking(looks: Sequence[Callable[[], None]]) -> AsyncIterator[None]:
    """Take the looks again and again meanwhile, in a thread: a disk may hold up whoever asks it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_look, looks)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _look(looks: Sequence[Callable[[], None]]) -> None:
    while True:
        await anyio.sleep(LOOK)
        for look in looks:
            try:
                await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
            except Exception:  # a look that fails must not end the others
                log.exception("whether the project's files are well cannot be seen")
