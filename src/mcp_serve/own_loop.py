"""A loop of our own, for a program that does nothing but serve."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

from mcp_serve.signals import LAST_WORDS, Stop, stop_on_signals


def run_to_the_end(serve: Callable[[Stop], Coroutine[Any, Any, None]], stop: Stop) -> None:
    """Serve until a signal comes or it ends by itself, and leave nothing behind but threads, which nobody can stop."""
    loop = asyncio.new_event_loop()
    # The loop is closed without waiting for threads: a tool that never returns must not hold us.
    with closing(loop), stop_on_signals(stop, loop):
        try:
            loop.run_until_complete(serve(stop))
        finally:
            loop.run_until_complete(_end_tasks(stop))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.set_exception_handler(_say_nothing)


def end_process_soon(seconds: float = 0.5) -> None:
    """End the process with code 0, unless it ends by itself first; for a program that has nothing left to do."""
    timer = threading.Timer(seconds, os._exit, args=[0])
    timer.daemon = True
    timer.start()


async def _end_tasks(stop: Stop) -> None:
    """Cancel what calls left behind, and wait as long as there is time."""
    left_behind = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left_behind:
        task.cancel()
    if left_behind:
        await asyncio.wait(left_behind, timeout=stop.left(LAST_WORDS / 2))


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A task that does not heed its cancellation is destroyed with the loop; that is no news."""
