"""What an operator wants done once the server answers, and before it no longer does."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from mcp_serve.signals import LAST_WORDS, Stop

Hook = Callable[[], Awaitable[None] | None]
log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def hooks(first: Hook | None, last: Hook | None, stop: Stop) -> AsyncIterator[None]:
    """Call the first hook, and at the end the last one; once we are told to stop, neither outlasts the budget."""
    try:
        await _call(first, stop)
        yield
    finally:
        await _call(last, stop)


async def _call(hook: Hook | None, stop: Stop) -> None:
    result = None if hook is None else hook()
    if not inspect.isawaitable(result):
        return
    work = asyncio.ensure_future(result)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({work}, timeout=stop.left(LAST_WORDS / 2))
    finally:
        stopping.cancel()
        is_late = not work.done()
        work.cancel()
    if is_late:
        log.warning("A hook did not end in time, and was cancelled.")
    else:
        work.result()
