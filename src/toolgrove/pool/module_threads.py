"""Where modules that are not async run: in threads of their own, so that one that never ends keeps nobody waiting."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from toolgrove.pool.fair_shares import Place

OCCUPIES = "_toolgrove_occupies"
"""Where a context has the function to call when a thread begins; it answers what to call when that ends."""
_KEPT = 16
_OURS: weakref.WeakSet[Any] = weakref.WeakSet()
Work = Callable[[], None]


class _Threads:
    """As many as there is work for; some stay for the next. The process does not wait for them when it ends."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Work]] = []

    def run(self, work: Work) -> None:
        """Do the work in a thread, at once."""
        try:
            line = self._idle.pop()
        except IndexError:
            line = SimpleQueue()
            threading.Thread(target=self._work, args=(line,), name="toolgrove-module", daemon=True).start()
        line.put(work)

    def _work(self, line: SimpleQueue[Work]) -> None:
        while True:
            line.get()()
            if len(self._idle) >= _KEPT:
                return
            self._idle.append(line)


_THREADS = _Threads()


def run_in_threads(module: Any) -> bool:
    """Whether a module needs a thread; if so, it runs in one of ours from now on."""
    execute = getattr(module, "execute", None)
    if execute in _OURS:
        return True
    if execute is None or inspect.iscoroutinefunction(execute):
        return False

    @functools.wraps(execute)
    async def threaded(*args: Any, **options: Any) -> Any:
        context = args[1] if len(args) > 1 else options.get("context")
        data = getattr(context, "data", None)
        begin = data.get(OCCUPIES) if isinstance(data, dict) else None
        return await _result(functools.partial(execute, *args, **options), begin)

    _OURS.add(threaded)
    with suppress(AttributeError):  # an object without room for it runs in a thread of asyncio, as apcore has it
        module.execute = threaded
    return True


async def _result(work: Callable[[], Any], begin: Callable[[], Work] | None) -> Any:
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    end = begin() if begin is not None else None

    def run() -> None:
        failure: BaseException | None = None
        value = None
        try:
            value = work()
        except BaseException as error:
            failure = error
        if end is not None:
            end()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, result, value, failure)

    _THREADS.run(run)
    return await result


def _settle(result: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if result.done():
        return
    if failure is None:
        result.set_result(value)
    elif isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        result.set_exception(failure)
    else:  # what would end the loop, or cannot pass through it, fails its call
        end = RuntimeError(f"the module ended with {failure!r}")
        end.__cause__ = failure
        result.set_exception(end)


class Occupied:
    """The place of one call. Threads that run on when its caller leaves keep counting for the agent until they end."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._running = 0
        self._left = False

    def occupies(self) -> Callable[[], Work]:
        """What the context of the call is given."""

        def begin() -> Work:
            with self._lock:
                self._running += 1
            return self._end

        return begin

    def leave(self) -> None:
        """The caller has its answer, or waits no more."""
        with self._lock:
            self._left = True
            running = self._running
        if running:
            self._place.lose()
        else:
            self._place.give_back()

    def _end(self) -> None:
        """Called in the thread."""
        with self._lock:
            self._running -= 1
            is_over = self._left and not self._running
        if is_over:
            with suppress(RuntimeError):  # the loop is closed, and its shares with it
                self._loop.call_soon_threadsafe(self._place.give_back)
