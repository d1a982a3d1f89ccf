"""Work that ends when the client for whom it is done goes away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.types import Receive

WATCH_AFTER = 0.1
"""Seconds within which most requests are answered; watching their connections would be wasted work."""
T = TypeVar("T")


def _unanswered() -> bool:
    return False


async def unless_gone(receive: Receive, work: Awaitable[T], is_answered: Callable[[], bool] = _unanswered) -> T | None:
    """The result of the work, or None once its client went away; the SDK watches only streams.

    An answered request looks like a lost one, so work that answers must say so: what it does afterwards is its own.
    """
    request = asyncio.current_task()
    if request is None:
        raise RuntimeError("a request is answered in a task")
    watcher: asyncio.Task[None] | None = None
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        if not is_answered():
            is_gone = True
            request.cancel()

    def start() -> None:
        nonlocal watcher
        watcher = asyncio.create_task(watch())

    timer = asyncio.get_running_loop().call_later(WATCH_AFTER, start)
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and request.uncancel() == 0:
            return None
        raise
    finally:
        timer.cancel()
        if watcher is not None:
            watcher.cancel()
